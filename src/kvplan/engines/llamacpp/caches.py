"""The caches of a start: cells, streams, layers, bytes of K and V, and of recurrent states.

attention    streams × cells × (K row + V row)          every layer without a window
window       the same with fewer cells                  src/llama-kv-cache-iswa.cpp
indexer      one key a cell                             src/llama-kv-cache-{dsa,msa}.cpp
recurrent    slots × (1 + snapshots) × (R + S) × 4 B    src/llama-memory-recurrent.cpp
csa hca lid  one row a group of tokens                  src/llama-kv-cache-dsv4.cpp
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from kvplan.core.formats import Format
from kvplan.core.layers import FLOAT32_BYTES
from kvplan.core.units import ceil_div, round_up
from kvplan.engines.llamacpp.geometry import Compressed, Geometry, Kept, Rows, State
from kvplan.engines.llamacpp.rules import IK, Latent
from kvplan.engines.llamacpp.settings import Settings

ATTENTION: Final = "attention"
WINDOW: Final = "window"
INDEXER: Final = "indexer"
RECURRENT: Final = "recurrent"
GROUPS: Final = ("csa", "hca", "lid")
CSA_RATIO: Final = 4
COMPRESSOR: Final = "compressor"
DRAFT: Final = "draft"


class Part(NamedTuple):
    """One block's share of one cache, in bytes: K and V, or R and S."""

    cache: str
    k: int
    v: int


class Width(NamedTuple):
    """Elements of a cell as they are stored; ``k`` and ``v`` are 0 where nothing is."""

    k: int
    v: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cache:
    """One cache as llama.cpp announces it: cells of one stream, and what all streams take."""

    name: str
    cells: int
    streams: int
    layers: int
    k_bytes: int
    v_bytes: int
    k_type: str
    v_type: str

    @property
    def num_bytes(self) -> int:
        """All of it."""
        return self.k_bytes + self.v_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Caches:
    """All caches of a start, and what each kind of block keeps in them."""

    geometry: Geometry
    settings: Settings
    parts: tuple[tuple[Part, ...], ...]
    draft: Part | None = None

    @property
    def num_bytes(self) -> int:
        """All layers, all slots."""
        return self.between(0, self.geometry.layers)

    def between(self, first: int, end: int) -> int:
        """Bytes of the blocks from ``first`` up to ``end``, a draft's with the last of them."""
        order = self.geometry.blocks.order
        held = order if (first, end) == (0, len(order)) else order[first:end]
        count = held.count
        found = sum(
            count(place) * sum(part.k + part.v for part in parts)
            for place, parts in enumerate(self.parts)
            if parts
        )
        drafts = self.draft is not None and first < end == len(order)
        return found + (self.draft.k + self.draft.v if self.draft and drafts else 0)

    def announced(self) -> list[Cache]:
        """Every cache in the order in which it is announced."""
        found = [self._cache(name) for name in self._names()]
        if self.draft:
            settings = self.settings
            drafted = Cache(
                name=DRAFT,
                cells=settings.cells,
                streams=settings.streams,
                layers=settings.draft_layers,
                k_bytes=self.draft.k,
                v_bytes=self.draft.v,
                k_type=settings.k.name,
                v_type=settings.v.name,
            )
            found.append(drafted)
        return found

    def _names(self) -> Iterator[str]:
        held = {part.cache for parts in self.parts for part in parts}
        if not self.geometry.recurrent or ATTENTION in held:
            yield ATTENTION
        yield from (name for name in (WINDOW, INDEXER, *GROUPS, COMPRESSOR) if name in held)
        if RECURRENT in held:
            yield RECURRENT

    def _cache(self, name: str) -> Cache:
        layers = k = v = 0
        order = self.geometry.blocks.order
        for place, parts in enumerate(self.parts):
            count = order.count(place)
            kept = self.geometry.blocks.kinds[place]
            mine = [part for part in parts if part.cache == name]
            layers += count * bool(mine or (name == ATTENTION and _empty(kept)))
            k += count * sum(part.k for part in mine)
            v += count * sum(part.v for part in mine)
        settings = self.settings
        states = name in (RECURRENT, COMPRESSOR)
        return Cache(
            name=name,
            cells=settings.slots if states else self.cells_of(name),
            streams=self._streams(name),
            layers=self.geometry.layers if name == RECURRENT else layers,
            k_bytes=k,
            v_bytes=v,
            k_type="f32" if states else settings.k.name,
            v_type="f32" if states else settings.v.name,
        )

    def cells_of(self, name: str) -> int:
        """Cells of one stream of a cache."""
        if name == WINDOW:
            return self.settings.window_cells(self._window())
        if name in GROUPS:
            shapes = (kept.compressed for kept in self.geometry.blocks.kinds)
            ratios = {shape.ratio for shape in shapes if shape and _group_name(shape, name)}
            return _group_cells(self.settings, min(ratios, default=1))
        return self.settings.cells

    def _streams(self, name: str) -> int:
        # DeepSeek V4 keeps a stream a sequence even in a unified cache.
        apart = self.geometry.compressed and name != ATTENTION
        return self.settings.slots if apart or name == RECURRENT else self.settings.streams

    def _window(self) -> int:
        sizes = [kept.rows.window for kept in self.geometry.blocks.kinds if kept.rows]
        sizes += [kept.compressed.window for kept in self.geometry.blocks.kinds if kept.compressed]
        return max(sizes, default=0)


def _empty(kept: Kept) -> bool:
    """A layer of the cache without any head in it."""
    return kept.listed and not kept.rows and not kept.state


@lru_cache(maxsize=4096)
def row_bytes(fmt: Format, width: int) -> int:
    """Bytes of one row.

    Raises:
        BadValue: a row that is no whole number of the type's blocks.
    """
    return fmt.keys(1, 1, width).total if width else 0


def caches_of(geometry: Geometry, settings: Settings) -> Caches:
    """The caches of a model under some settings.

    Raises:
        BadValue: a cache type whose blocks do not divide a row.
    """
    parts = tuple(tuple(_parts(kept, geometry, settings)) for kept in geometry.blocks.kinds)
    return Caches(
        geometry=geometry, settings=settings, parts=parts, draft=_draft(geometry, settings)
    )


def _draft(geometry: Geometry, settings: Settings) -> Part | None:
    """A context of its own for the model's draft blocks, as long as the main one."""
    if not settings.draft_layers or geometry.last is None:
        return None
    k, v = width_of(geometry.last, settings)
    cells = settings.draft_layers * settings.streams * settings.cells
    return Part(DRAFT, cells * row_bytes(settings.k, k), cells * row_bytes(settings.v, v))


def _parts(kept: Kept, geometry: Geometry, settings: Settings) -> Iterator[Part]:
    if kept.rows:
        yield from _rows(kept.rows, geometry, settings)
    if kept.compressed:
        yield from _groups(kept.compressed, settings)
    if kept.state:
        yield _states(kept.state, settings)
    if not kept.rows and kept.listed and _pads_v(geometry, settings):
        # A layer without heads keeps a V as wide as the widest where values are transposed.
        yield Part(ATTENTION, 0, _total(settings, row_bytes(settings.v, geometry.widest_v)))


def _rows(rows: Rows, geometry: Geometry, settings: Settings) -> Iterator[Part]:
    k, v = width_of(rows, settings)
    if v and not rows.latent and _pads_v(geometry, settings):
        v = geometry.widest_v
    streams, cells = settings.streams, settings.cells
    name = ATTENTION
    if rows.window and settings.window_cache:
        name, cells = WINDOW, settings.window_cells(rows.window)
    if geometry.compressed:
        streams = settings.slots
    if k or v:
        per_cell = streams * cells
        yield Part(name, per_cell * row_bytes(settings.k, k), per_cell * row_bytes(settings.v, v))
    if rows.indexer and settings.rules.indexers:
        each = settings.streams * settings.cells
        # The indexer of plain attention has a V of one head; that of latent attention none.
        head_v = 0 if rows.latent or not rows.v else _one_head(rows)
        keys = each * row_bytes(settings.k, rows.indexer)
        yield Part(INDEXER, keys, each * row_bytes(settings.v, head_v))


def _one_head(rows: Rows) -> int:
    return rows.v // rows.heads


def width_of(rows: Rows, settings: Settings) -> Width:
    """The form in which latent rows are stored, by build or ``-mla``; others as they are."""
    if not rows.latent:
        return Width(rows.k, rows.v)
    row = rows.latent + rows.rope
    if settings.rules.flavour == IK:
        if settings.mla == 0:
            return Width(rows.k, rows.v)
        transposed = settings.mla == 1 and not settings.flash_attention
        return Width(row, rows.latent if transposed else 0)
    form = settings.rules.latent
    if form is Latent.DECOMPRESSED:
        return Width(rows.k, rows.v)
    return Width(row, rows.latent if form is Latent.TWICE else 0)


def _pads_v(geometry: Geometry, settings: Settings) -> bool:
    """Without flash attention values are transposed, and all layers' as wide as the widest."""
    return settings.rules.v_as_wide_as_widest and not settings.flash_attention


def _total(settings: Settings, each: int) -> int:
    return settings.streams * settings.cells * each


def _states(state: State, settings: Settings) -> Part:
    rows = settings.slots * (1 + settings.snapshots) * FLOAT32_BYTES
    return Part(RECURRENT, rows * state.r, rows * state.s)


def _groups(shape: Compressed, settings: Settings) -> Iterator[Part]:
    """DeepSeek V4 (src/llama-kv-cache-dsv4.cpp, b11434): K alone, a stream a sequence."""
    slots, fmt = settings.slots, settings.k
    window = slots * settings.window_cells(shape.window)
    yield Part(WINDOW, window * row_bytes(fmt, shape.dim), 0)
    entries = slots * _group_cells(settings, shape.ratio)
    overlaps = shape.ratio == CSA_RATIO
    yield Part("csa" if overlaps else "hca", entries * row_bytes(fmt, shape.dim), 0)
    planes = slots * (1 + settings.snapshots) * FLOAT32_BYTES
    rows, width = (2 * shape.ratio, 2) if overlaps else (shape.ratio, 1)
    state = planes * rows * width
    yield Part(COMPRESSOR, state * shape.dim, state * shape.dim)
    if shape.indexer:
        yield Part("lid", entries * row_bytes(fmt, shape.indexer), 0)
        yield Part(COMPRESSOR, state * shape.indexer, state * shape.indexer)


def _group_name(shape: Compressed, name: str) -> bool:
    return (name == "hca") == (shape.ratio != CSA_RATIO)


def _group_cells(settings: Settings, ratio: int) -> int:
    return round_up(max(1, ceil_div(settings.cells, ratio)), 256)
