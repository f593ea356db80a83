"""The caches that can be asked for: by name, how one is made, and what it should hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from kvplan.core.curve import Curve
from kvplan.core.errors import BadValue, UnknownName
from kvplan.core.formats import parse_format
from kvplan.core.model import Model
from kvplan.core.units import ceil_div
from kvplan.engines.transformers.caches import quantised
from kvplan.lab import layouts
from kvplan.lab.layouts import Layout

DEFAULT: Final = (
    "full", "none", "static", "paged", "sliding", "int8", "int4", "int2", "fp8", "offload", "disk",
    "h2o", "snapkv",
)  # fmt: skip
LIBRARY_GROUP, LIBRARY_RESIDUAL = 64, 128  # transformers' defaults


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How large a cache shall be: for ``tokens`` in all, and what it may keep of them."""

    tokens: int
    budget: int
    sinks: int = 4
    group: int = 32
    residual: int = 32
    block_size: int = 16

    @property
    def num_blocks(self) -> int:
        """Blocks of a pool for one sequence, the null block among them."""
        return ceil_div(self.tokens, self.block_size) + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of cache.

    ``make(config, sizes)`` gives transformers' ``Cache`` or None, ``layout(curve, sizes)`` the
    bytes it should hold. ``exact``: greedy output has to be the full cache's; ``observed``: it
    needs the attention that tells what was looked at.
    """

    name: str
    note: str
    make: Callable[[Any, Sizes], Any]
    layout: Callable[[Curve, Sizes], Layout]
    exact: bool = False
    observed: bool = False

    def predicted(self, model: Model, dtype: str, sizes: Sizes, prompt: int) -> int:
        """Bytes between steps after ``sizes.tokens`` tokens, ``prompt`` of them at once."""
        curve = layouts.as_computed(model.curve(parse_format(dtype)))
        return self.layout(curve, sizes).num_bytes(prompt, sizes.tokens)


def find(names: str) -> list[Kind]:
    """The kinds of a list like ``full,int4``, or the usual ones of an empty one.

    Raises:
        UnknownName: one that there is not; the message lists those there are.
    """
    asked = [name.strip().lower() for name in names.split(",", 64)] if names.strip() else DEFAULT
    for name in asked:
        if name not in KINDS:
            raise UnknownName("cache", name[:40], hint=f"Known: {', '.join(KINDS)}.")
    return [KINDS[name] for name in dict.fromkeys(asked)]


def _none(config: Any, sizes: Sizes) -> Any:
    return None


def _full(config: Any, sizes: Sizes) -> Any:
    from transformers import DynamicCache

    return DynamicCache(config=config)


def _static(config: Any, sizes: Sizes) -> Any:
    from transformers import StaticCache

    return StaticCache(config=config, max_cache_len=sizes.tokens)


def _paged(config: Any, sizes: Sizes) -> Any:
    from kvplan.lab.caches.base import KeptLayer, layers_of
    from kvplan.lab.caches.paged import PagedCache, Pages

    num_layers = len(layers_of(config, KeptLayer))
    return PagedCache(Pages(num_layers, sizes.num_blocks, sizes.block_size))


def _sliding(config: Any, sizes: Sizes) -> Any:
    from kvplan.lab.caches.base import cache_of
    from kvplan.lab.caches.sliding import SlidingLayer

    recent = sizes.budget - sizes.sinks
    return cache_of(config, lambda: SlidingLayer(sizes.sinks, recent))


def _offloaded(store: str) -> Callable[[Any, Sizes], Any]:
    def make(config: Any, sizes: Sizes) -> Any:
        from kvplan.lab.caches import offloaded
        from kvplan.lab.caches.base import cache_of

        return cache_of(config, lambda: offloaded.OffloadedLayer(getattr(offloaded, store)))

    return make


def _heavy(config: Any, sizes: Sizes) -> Any:
    from kvplan.lab.caches.base import cache_of
    from kvplan.lab.caches.heavy_hitters import HeavyHitterLayer

    return cache_of(config, lambda: HeavyHitterLayer(sizes.budget))


def _snapped(config: Any, sizes: Sizes) -> Any:
    from kvplan.lab.caches.base import cache_of
    from kvplan.lab.caches.snapped import SnappedLayer

    return cache_of(config, lambda: SnappedLayer(sizes.budget, window=min(32, sizes.budget // 2)))


def _quantised(bits: int, *, keys_per_token: bool = False) -> Kind:
    def make(config: Any, sizes: Sizes) -> Any:
        from kvplan.lab.caches.base import cache_of
        from kvplan.lab.caches.quantised import QuantisedLayer

        return cache_of(
            config,
            lambda: QuantisedLayer(
                bits, sizes.group, sizes.residual, keys_per_token=keys_per_token
            ),
        )

    def layout(curve: Curve, sizes: Sizes) -> Layout:
        fmt = layouts.kivi(bits, group=sizes.group, residual=sizes.residual, whole=curve.fmt)
        return layouts.Quantised(curve=curve, fmt=fmt, keys_per_token=keys_per_token)

    name = f"int{bits}-token" if keys_per_token else f"int{bits}"
    how = "keys and values per token" if keys_per_token else "keys per channel, values per token"
    return Kind(name=name, note=f"{bits} bits, {how}, recent whole", make=make, layout=layout)


def _library(backend: str, bits: int) -> Kind:
    def make(config: Any, sizes: Sizes) -> Any:
        from transformers import QuantizedCache

        options = {} if backend == "fp8" else {"nbits": bits, "axis_key": 0, "axis_value": 0}
        try:
            return QuantizedCache(backend, config, **options)
        except (ImportError, ValueError) as error:
            raise BadValue(f"transformers' {backend} cache: {str(error).splitlines()[0]}") from None

    def layout(curve: Curve, sizes: Sizes) -> Layout:
        cache = quantised(curve, backend, bits, LIBRARY_GROUP, LIBRARY_RESIDUAL)
        return layouts.Library(curve=curve, cache=cache)

    name = "fp8" if backend == "fp8" else f"{backend}{bits}"
    return Kind(name=name, note=f"transformers' {backend}, {bits} bits", make=make, layout=layout)


def _table(*kinds: Kind) -> dict[str, Kind]:
    return {kind.name: kind for kind in kinds}


KINDS: Final = _table(
    Kind(
        name="full",
        note="every token (transformers' dynamic cache)",
        make=_full,
        layout=lambda curve, sizes: layouts.Full(curve=curve),
        exact=True,
    ),
    Kind(
        name="none",
        note="nothing is kept: every step reads all tokens again",
        make=_none,
        layout=lambda curve, sizes: layouts.Nothing(curve=curve),
        exact=True,
    ),
    Kind(
        name="static",
        note="the whole length from the start (transformers' static cache)",
        make=_static,
        layout=lambda curve, sizes: layouts.Static(curve=curve, length=sizes.tokens),
        exact=True,
    ),
    Kind(
        name="paged",
        note="blocks of a pool by a table, the null block among them",
        make=_paged,
        layout=lambda curve, sizes: layouts.Paged(
            curve=curve, num_blocks=sizes.num_blocks, block_size=sizes.block_size
        ),
        exact=True,
    ),
    Kind(
        name="sliding",
        note="the first tokens and the last",
        make=_sliding,
        layout=lambda curve, sizes: layouts.Sliding(
            curve=curve, sinks=sizes.sinks, recent=sizes.budget - sizes.sinks
        ),
    ),
    _quantised(8),
    _quantised(4),
    _quantised(2),
    _quantised(4, keys_per_token=True),
    _quantised(2, keys_per_token=True),
    _library("fp8", 8),
    Kind(
        name="offload",
        note="in host memory, a layer at a time on the device",
        make=_offloaded("HostStore"),
        layout=lambda curve, sizes: layouts.Offloaded(curve=curve),
        exact=True,
    ),
    Kind(
        name="disk",
        note="in files, a layer at a time on the device",
        make=_offloaded("DiskStore"),
        layout=lambda curve, sizes: layouts.Offloaded(curve=curve),
        exact=True,
    ),
    Kind(
        name="h2o",
        note="the tokens that were attended to most, and the recent",
        make=_heavy,
        layout=lambda curve, sizes: layouts.HeavyHitters(curve=curve, budget=sizes.budget),
        observed=True,
    ),
    Kind(
        name="snapkv",
        note="what the end of the prompt looks at, and the answer",
        make=_snapped,
        layout=lambda curve, sizes: layouts.Snapped(curve=curve, budget=sizes.budget),
        observed=True,
    ),
    _library("hqq", 8),
    _library("hqq", 4),
    _library("hqq", 2),
    _library("quanto", 4),
    _library("quanto", 2),
)
