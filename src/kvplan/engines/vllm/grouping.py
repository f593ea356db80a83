"""Layers to groups that draw their blocks from one pool, as a version of vLLM does it.

    one kind of layer                       one group
    always as many blocks, other pages      one group, its block the sum of the pages
    windows of latent rows, rings           packed side by side (packing.py)
    else                                    pages made equal, kinds cut into groups of one size

vLLM 0.32.0, v1/core/kv_cache_utils.py, get_kv_cache_groups.
"""

from __future__ import annotations

from collections.abc import Iterable

from kvplan.core.units import ceil_div
from kvplan.engines.vllm.groups import CacheGroup, Counted, Stages, dealt
from kvplan.engines.vllm.packing import latent_window_groups, packed_groups
from kvplan.engines.vllm.rules import Rules
from kvplan.engines.vllm.specs import (
    ChunkSpec,
    FullSpec,
    LatentSpec,
    LatentWindowSpec,
    RingSpec,
    Spec,
    StateSpec,
    WindowSpec,
)

NEWER = "Use a newer release."
KEEP_HYBRID = "Start it without --disable-hybrid-kv-cache-manager."


class CannotGroup(Exception):
    """The version refuses the mix of layers: why, and the lever."""


def group(layers: Iterable[tuple[Spec, Stages]], rules: Rules, *, hybrid: bool = True) -> Groups:
    """The groups of a model's layers, in vLLM's order.

    Args:
        layers: every spec with the stage of each of its layers, in order of first appearance.
        rules: the version's.
        hybrid: off with ``--disable-hybrid-kv-cache-manager``.

    Raises:
        CannotGroup: the version does not start with such a mix.
    """
    counted = count_equal(layers)
    if not hybrid or not rules.grouped:
        counted = promoted(counted)
    if not counted:
        return ()
    if is_uniform(counted):
        return (CacheGroup(members=counted),)
    found = _packed(counted, rules)
    if found is not None:
        return found
    try:
        return split(unified(counted, rules), rules.group_factor)
    except CannotGroup:
        fallback = _fallback(counted)
        if fallback is None or not rules.pads_pages:
            raise
        return (CacheGroup(members=fallback),)


Groups = tuple[CacheGroup, ...]


def count_equal(layers: Iterable[tuple[Spec, Stages]]) -> Counted:
    """Equal specs together, in order of first appearance."""
    found: dict[Spec, Stages] = {}
    for spec, stages in layers:
        found[spec] = found.get(spec, ()) + stages
    return tuple(found.items())


def is_uniform(counted: Counted) -> bool:
    """Whether all layers always need the same number of blocks."""
    return len({spec.uniform_key for spec, _ in counted}) <= 1


def _packed(counted: Counted, rules: Rules) -> Groups | None:
    kinds = {type(spec) for spec, _ in counted}
    if rules.packs_any_kind and kinds & {LatentWindowSpec, RingSpec}:
        return packed_groups(counted)
    if LatentWindowSpec in kinds:
        return latent_window_groups(counted, pads=rules.packing != "widest")
    return None


def promoted(counted: Counted) -> Counted:
    """Windows and chunks given blocks for every token, where there is full attention beside.

    Raises:
        CannotGroup: even so the layers differ.
    """
    if is_uniform(counted):
        return counted
    full = {spec.block_size for spec, _ in counted if isinstance(spec, FullSpec)}
    if not full:
        return counted
    block = full.pop() if len(full) == 1 else None
    found = count_equal((_as_full(spec, block), stages) for spec, stages in counted)
    if not is_uniform(found):
        raise CannotGroup(
            "without the hybrid manager all layers have to be of one type, and these are not. "
            + KEEP_HYBRID
        )
    return found


def _as_full(spec: Spec, block: int | None) -> Spec:
    if not isinstance(spec, WindowSpec | ChunkSpec):
        return spec
    size = block or spec.block_size
    page = spec.page_bytes * size // spec.block_size
    if isinstance(spec, LatentWindowSpec):
        return LatentSpec(block_size=size, page_bytes=page, shape=spec.shape)
    return FullSpec(block_size=size, page_bytes=page, shape=spec.shape)


def _fallback(counted: Counted) -> Counted | None:
    """Plain windows beside latent attention as full attention (full allocation fallback)."""
    kinds = {type(spec) for spec, _ in counted}
    if LatentSpec not in kinds or WindowSpec not in kinds or kinds & {LatentWindowSpec, ChunkSpec}:
        return None
    try:
        return promoted(counted)
    except CannotGroup:
        return None


def unified(counted: Counted, rules: Rules) -> Counted:
    """All pages as large as the largest: by more tokens a block where that divides, else padded.

    Raises:
        CannotGroup: a page that the version can neither scale nor pad.
    """
    largest = max(spec.page_bytes for spec, _ in counted)
    if all(spec.page_bytes == largest for spec, _ in counted):
        return counted
    if not rules.unifies_pages:
        raise CannotGroup(f"its layers' pages differ, and it does not make them equal. {NEWER}")
    return count_equal((_resized(spec, largest, rules), stages) for spec, stages in counted)


def _resized(spec: Spec, page: int, rules: Rules) -> Spec:
    if spec.page_bytes == page:
        return spec
    if isinstance(spec, StateSpec):
        if rules.pads_pages:
            return spec.padded_to(page)
    elif page % spec.page_bytes == 0:
        return spec.scaled_to(page)
    elif rules.pads_pages and spec.can_pad:
        return spec.padded_to(page)
    raise CannotGroup(
        f"a page of {spec.page_bytes:,} B ({spec.kind.replace('_', ' ')}) does not divide the "
        f"largest of {page:,} B. {NEWER}"
    )


def split(counted: Counted, factor: float) -> Groups:
    """Each kind cut into groups of one size.

    The size is the smallest kind's, or the largest's where that is below ``factor`` times it.
    """
    counts = [len(stages) for _, stages in counted]
    smallest, largest = min(counts), max(counts)
    size = largest if largest < smallest * factor else smallest
    found: Groups = ()
    for item in counted:
        found += dealt((item,), ceil_div(len(item[1]), size))
    return found
