"""Layers to bytes: what a token costs in each pool of one rank, and a slot of states.

    full      every token of a sequence                        keys, values, indexer keys
    window    tokens of the window layers, where they have a pool of their own
    state     a slot: convolution inputs and recurrent state

Two sets of figures: what the budget divides by, and what is allocated and printed. They differ
between releases (rules.py). SGLang model_executor/pool_configurator.py (0.5.23),
DefaultPoolConfigurator and HybridSWAPoolConfigurator; mem_cache/memory_pool.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from kvplan.core.cross import CrossAttention
from kvplan.core.errors import BadValue
from kvplan.core.hidden import HiddenStates
from kvplan.core.latent import IndexedLatentAttention, LatentAttention
from kvplan.core.latent_windows import SharedLatentIndex
from kvplan.core.layers import FullAttention, Layer
from kvplan.core.model import Model
from kvplan.core.states import RecurrentState, StateTensor
from kvplan.core.units import ceil_div
from kvplan.engines.sglang.compressed import compressed_cell
from kvplan.engines.sglang.elements import FP8, Elements
from kvplan.engines.sglang.rules import Rules
from kvplan.engines.sglang.settings import Settings
from kvplan.engines.weights import stage_layers

STATE_BYTES: Final = {"float32": 4, "bfloat16": 2, "float16": 2}
INDEX_BLOCK: Final = 128  # elements of an indexer's key that share a float32 scale


class Row(NamedTuple):
    """Bytes of one token: allocated keys and values, indexer keys, and what the budget counts."""

    keys: int = 0
    values: int = 0
    indexer: int = 0
    budget: int = 0

    def plus(self, other: Row, count: int) -> Row:
        """With ``count`` layers of the other beside it."""
        return Row(*(mine + its * count for mine, its in zip(self, other, strict=True)))

    @property
    def printed(self) -> int:
        """All that the log's size is made of."""
        return self.keys + self.values + self.indexer


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """Bytes of a token in each pool of one rank, and of a slot; a token of the draft's cache."""

    full: Row
    window: Row
    draft: Row
    full_layers: int
    window_layers: int
    state_layers: int
    window_tokens: int
    conv_bytes: int
    state_bytes: int
    latent: bool
    compressed: float = 0.0

    @property
    def slot(self) -> int:
        """Bytes of one slot of states."""
        return self.conv_bytes + self.state_bytes

    def as_allocated(self) -> Cells:
        """The same with a budget that counts what is allocated (some releases' does not)."""
        full = self.full._replace(budget=self.full.printed)
        return replace(self, full=full, window=self.window._replace(budget=self.window.printed))


def cells(model: Model, settings: Settings, rules: Rules) -> Cells:
    """The cells of the fullest pipeline stage.

    Raises:
        BadValue: a cache that SGLang has no pool for.
    """
    layers = _stage(model, settings.pp)
    sizer = _Sizer(settings, rules, indexed=_indexed(layers))
    full, window, draft = Row(), Row(), Row()
    full_layers = window_layers = state_layers = conv = state = window_tokens = 0
    for layer, count in layers:
        if isinstance(layer, RecurrentState):
            state_layers += count
            one = state_bytes(layer, settings)
            conv, state = conv + one[0] * count, state + one[1] * count
            continue
        row = sizer.row(layer)
        if not row.budget and not row.printed:
            continue
        if layer.window is not None and settings.pooled_windows:
            window, window_layers = window.plus(row, count), window_layers + count
            window_tokens = max(window_tokens, layer.window)
        else:
            full, full_layers = full.plus(row, count), full_layers + count
            draft = row
    if state_layers and settings.npu and rules.npu_all_layers:
        full = full.plus(draft._replace(budget=0), state_layers)
    if settings.draft_heads is not None:
        heads, width = settings.draft_heads
        draft = sizer.row(
            FullAttention(kv_heads=heads, key_dim=width, value_dim=width, query_heads=heads)
        )
    return Cells(
        full=full,
        window=window,
        draft=Row().plus(draft, settings.draft_layers),
        full_layers=full_layers,
        window_layers=window_layers,
        state_layers=state_layers,
        window_tokens=window_tokens,
        conv_bytes=conv,
        state_bytes=state,
        latent=any(isinstance(layer, LatentAttention) for layer, _ in layers),
        compressed=compressed_cell(layers, settings),
    )


def _stage(model: Model, stages: int) -> list[tuple[Layer, int]]:
    """Kinds and counts of the pipeline stage with the most layers."""
    if stages == 1:
        return model.layers()
    sizes = stage_layers(len(model.blocks), stages)
    longest = max(range(stages), key=sizes.__getitem__)
    start = sum(sizes[:longest])
    counts: dict[Layer, int] = {}
    for place in model.blocks.order[start : start + sizes[longest]]:
        for layer in model.blocks.kinds[place]:
            counts[layer] = counts.get(layer, 0) + 1
    return list(counts.items())


def _indexed(layers: Iterable[tuple[Layer, int]]) -> IndexedLatentAttention | None:
    """The layers' indexer, if they have one."""
    for layer, _ in layers:
        if isinstance(layer, IndexedLatentAttention):
            return layer
    return None


class _Sizer:
    """Bytes of one token in one layer under a start's settings."""

    def __init__(
        self, settings: Settings, rules: Rules, *, indexed: IndexedLatentAttention | None
    ) -> None:
        self.settings, self.rules, self.indexed = settings, rules, indexed

    def row(self, layer: Layer) -> Row:
        """A layer's row.

        Raises:
            BadValue: a kind of cache that SGLang does not keep.
        """
        if isinstance(layer, FullAttention):
            return self._heads(layer)
        if isinstance(layer, LatentAttention):
            return self._latent(layer)
        if isinstance(layer, SharedLatentIndex):
            return self._index(layer.index_dim)
        if isinstance(layer, HiddenStates | CrossAttention):
            raise BadValue(f"SGLang has no pool for {layer.kind.replace('_', ' ')} of this model.")
        return Row()

    def _heads(self, layer: FullAttention) -> Row:
        heads = max(1, layer.kv_heads // self.settings.attention_tp)
        keys, values = heads * layer.key_dim, heads * layer.value_dim
        counted = keys + values if self.rules.widths_apart else 2 * keys
        row = self._row(keys, values, counted)
        if layer.index_dim:
            index = self._elements.num_bytes(layer.index_dim)
            row = row._replace(indexer=index, budget=row.budget + index)
        return row

    def _latent(self, layer: LatentAttention) -> Row:
        width = layer.rank + layer.rope_dim
        if self.indexed is None:
            return self._row(width, 0, width)
        if self._elements is FP8 and not self.settings.trtllm_latent:
            # The latent in blocks of 128 with a float32 scale each, the rotary part in 16 bits.
            width = layer.rank + layer.rank // INDEX_BLOCK * 4 + 2 * layer.rope_dim
        own = isinstance(layer, IndexedLatentAttention) or not self.rules.index_elided
        return self._row(width, 0, width).plus(self._index(self.indexed.index_dim), own)

    def _index(self, dim: int) -> Row:
        """An indexer's key: fp8 in blocks with a scale; an NPU keeps it in the cache's type."""
        if not self.rules.index_counted:
            return Row()
        fp8 = ceil_div(dim + dim // INDEX_BLOCK * 4, max(1, self.settings.index_pool))
        kept = self._elements.num_bytes(dim) if self.settings.npu else fp8
        counted = kept if self.rules.npu_index_counted else fp8
        return Row(indexer=kept, budget=counted)

    @property
    def _elements(self) -> Elements:
        return self.settings.elements

    def _row(self, keys: int, values: int, counted: int) -> Row:
        fmt = self._elements
        scales = fmt.scale_bytes if self.rules.scales_printed else _no_scales
        return Row(
            keys=fmt.num_bytes(keys) + scales(keys),
            values=fmt.num_bytes(values) + scales(values),
            budget=fmt.num_bytes(counted) + fmt.scale_bytes(counted),
        )


def _no_scales(count: int) -> int:
    return 0


def state_bytes(layer: RecurrentState, settings: Settings) -> tuple[int, int]:
    """Convolution inputs and recurrent state of one slot on one rank.

    A convolution over k tokens keeps k − 1 of them (mamba_utils.py); transformers keeps k.
    """
    conv = state = 0
    for tensor in layer.tensors:
        share = tensor.on_rank(settings.attention_tp)
        if "conv" in tensor.name or "shift" in tensor.name:
            conv += _without_newest(share)
        else:
            elements = share.num_bytes // share.element_bytes
            state += elements * STATE_BYTES.get(settings.state_dtype, 4)
    return conv, state


def _without_newest(tensor: StateTensor) -> int:
    length = tensor.shape[-1]
    if len(tensor.shape) < 2 or length < 2:
        return tensor.num_bytes
    return tensor.num_bytes // length * (length - 1)
