"""Groups of layers whose pages differ and are packed side by side in a block.

A repeat is one layer of each page size; all groups hold the same number of repeats, so that one
block serves any of them.

    full attention   C4 rows, C4 index keys, C128 rows      whole: the block has to hold it
    windows          43 layers ÷ 22 repeats                 2 groups
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from kvplan.core.units import ceil_div
from kvplan.engines.vllm.groups import CacheGroup, Counted, Stages, dealt, repeats
from kvplan.engines.vllm.rules import Packing
from kvplan.engines.vllm.specs import LatentWindowSpec, RingSpec, Spec, StateSpec, WindowSpec


def least_padding(values: Sequence[int], least: int) -> int:
    """The size from ``least`` up to the largest value that rounds the values up by the least.

    The larger of two equal ones (v1/core/kv_cache_utils.py, _approximate_gcd).
    """
    sizes = range(max(1, least), max(values) + 1)
    return min(sizes, key=lambda d: (sum(-value % d for value in values), -d), default=least)


def buckets(counted: Counted) -> list[Counted]:
    """Specs that always need as many blocks as each other, in order of first appearance."""
    found: dict[Hashable, list[tuple[Spec, Stages]]] = {}
    for item in counted:
        found.setdefault(item[0].uniform_key, []).append(item)
    return [tuple(bucket) for bucket in found.values()]


def latent_window_groups(counted: Counted, *, pads: bool) -> tuple[CacheGroup, ...]:
    """DeepSeek V4 before 0.30: the full group first, then each window's, in its pages.

    vLLM 0.25.1, v1/core/kv_cache_utils.py, group_and_unify_kv_cache_specs and
    _get_kv_cache_groups_uniform_groups; ``pads`` rounds a window's page up to one of the full
    group's, which releases from 0.27 no longer do.
    """
    full = tuple(item for item in counted if not isinstance(item[0], LatentWindowSpec))
    windows = buckets(tuple(item for item in counted if isinstance(item[0], LatentWindowSpec)))
    pages = sorted(repeats(full))
    if pads:
        windows = [tuple((_fitted(spec, pages), n) for spec, n in bucket) for bucket in windows]
    counts = [max(repeats(bucket).values()) for bucket in (full, *windows)]
    size = least_padding(counts, counts[0])
    found = [CacheGroup(members=full)]
    for bucket in windows:
        found += dealt(bucket, ceil_div(max(repeats(bucket).values()), size))
    return tuple(found)


def _fitted(spec: Spec, pages: Sequence[int]) -> Spec:
    return spec.padded_to(next((page for page in pages if page >= spec.page_bytes), pages[-1]))


class Bucket(NamedTuple):
    """Specs that always need as many blocks as each other, and their layers by page size."""

    members: Counted
    sizes: dict[int, int]

    @property
    def is_even(self) -> bool:
        """Whether there are as many layers of each page size."""
        return len(set(self.sizes.values())) == 1

    @property
    def repeats(self) -> int:
        """Layers of the page size that most have."""
        return max(self.sizes.values())

    def widest(self, groups: int) -> int:
        """Bytes of the largest of so many groups."""
        return sum(ceil_div(count, groups) * page for page, count in self.sizes.items())

    def is_state(self, each: int) -> bool:
        """Whether it may go down to one layer a group."""
        first = self.members[0][0]
        return isinstance(first, StateSpec | RingSpec) or (
            not each and isinstance(first, WindowSpec)
        )

    def cuts(self, each: int) -> int:
        """Groups of ``each`` repeats; one where its page sizes do not repeat."""
        return ceil_div(self.repeats, each) if each and self.is_even else 1


def packed_groups(counted: Counted) -> tuple[CacheGroup, ...]:
    """Any kinds since 0.30 (v1/core/kv_cache_utils.py, _get_packed_kv_cache_groups).

    States go as many to a group as fit in the block that the others need anyway.
    """
    found = [Bucket(members, repeats(members)) for members in buckets(counted)]
    each = _repeats_each(found)
    anchor = max(
        bucket.widest(sum(bucket.sizes.values()) if bucket.is_state(each) else bucket.cuts(each))
        for bucket in found
    )
    groups: list[CacheGroup] = []
    for bucket in found:
        cuts = bucket.cuts(each)
        if bucket.is_state(each):
            room = max(1, anchor // bucket.members[0][0].page_bytes)
            cuts = max(cuts, ceil_div(sum(bucket.sizes.values()), room))
        groups += dealt(bucket.members, cuts)
    return tuple(groups)


def _repeats_each(found: Sequence[Bucket]) -> int:
    """Repeats a group; 0 where no bucket mixes page sizes evenly, so that nothing is cut."""
    even = [bucket for bucket in found if bucket.is_even]
    least = max((bucket.repeats for bucket in even if len(bucket.sizes) > 1), default=0)
    return least and least_padding([bucket.repeats for bucket in even], least)


def packed_block_bytes(groups: Sequence[CacheGroup], packing: Packing) -> int:
    """Bytes of one block of several groups of mixed pages, before 0.27.

    Tuples: one page of each size as often as any group repeats. Slots: of each page size as many
    as the group with the most (_pool_bytes_per_block by version).
    """
    by_size = [repeats(group.members) for group in groups]
    if packing == "tuples":
        return sum(by_size[0]) * max(max(size.values()) for size in by_size)
    pages = {page for size in by_size for page in size}
    return sum(page * max(size.get(page, 0) for size in by_size) for page in pages)
