"""Layers to bytes: a token in the blocks of each window, and a sequence's state, on one rank.

    heads    2 × KV heads of the rank × K's width           V is stored as wide as K
    latent   one row, whole on every rank

TensorRT-LLM 0.19, cpp/tensorrt_llm/batch_manager/kvCacheManager.cpp; tensorrt_llm/_torch/
pyexecutor/resource_manager.py (1.0).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kvplan.core.cross import CrossAttention
from kvplan.core.errors import BadValue
from kvplan.core.latent import IndexedLatentAttention, LatentAttention
from kvplan.core.layers import FullAttention, Layer
from kvplan.core.model import Model
from kvplan.core.states import RecurrentState
from kvplan.engines.tensorrt_llm.settings import Settings
from kvplan.engines.weights import stage_layers

INDEX_SCALE_BLOCK = 128  # elements of an indexer's fp8 key that share a float32 scale


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """Bytes of a token by window (the longest last), its layers, and a sequence's state."""

    windows: tuple[tuple[int, int, int], ...]  # window, layers, bytes of a token
    state_bytes: int
    state_layers: int
    latent: bool

    @property
    def token(self) -> int:
        """Bytes of a token in all layers."""
        return sum(num_bytes for _, _, num_bytes in self.windows)


def cells(model: Model, settings: Settings) -> Cells:
    """The cells of the fullest pipeline stage.

    Raises:
        BadValue: a cache that has no pool here.
    """
    found: dict[int, tuple[int, int]] = {}
    state = state_layers = 0
    for window, layer, count in _layers(model, settings):
        if isinstance(layer, RecurrentState):
            state += layer.on_rank(settings.attention_tp).fixed_bytes(settings.fmt) * count
            state_layers += count
            continue
        size = token_bytes(layer, settings)
        if size:
            layers, num_bytes = found.get(window, (0, 0))
            found[window] = layers + count, num_bytes + size * count
    return Cells(
        windows=tuple((window, *counted) for window, counted in sorted(found.items())),
        state_bytes=state,
        state_layers=state_layers,
        latent=any(isinstance(layer, LatentAttention) for layer, _ in model.layers()),
    )


def _layers(model: Model, settings: Settings) -> Iterator[tuple[int, Layer, int]]:
    """Window, kind and count. Windows come from the flag alone, not from the model."""
    longest = settings.max_seq_len
    if len(settings.windows) < 2 and settings.pp == 1:
        window = min(settings.windows[0], longest) if settings.windows else longest
        for layer, count in model.layers():
            yield window, layer, count
        return
    sizes = stage_layers(len(model.blocks), settings.pp)
    stage = max(range(settings.pp), key=sizes.__getitem__)
    start = sum(sizes[:stage])
    pattern = settings.windows or (longest,)
    counts: dict[tuple[int, Layer], int] = {}
    for place in range(start, start + sizes[stage]):
        window = min(pattern[place % len(pattern)], longest)
        for layer in model.blocks[place]:
            counts[window, layer] = counts.get((window, layer), 0) + 1
    for (window, layer), count in counts.items():
        yield window, layer, count


def token_bytes(layer: Layer, settings: Settings) -> int:
    """Bytes of one token in one layer.

    Raises:
        BadValue: a kind of cache that is not kept in blocks.
    """
    fmt = settings.fmt
    if isinstance(layer, FullAttention):
        heads = max(1, layer.kv_heads // settings.attention_tp)
        return 2 * fmt.keys(1, heads, layer.key_dim).total
    if isinstance(layer, LatentAttention):
        index = 0
        if isinstance(layer, IndexedLatentAttention):
            index = layer.index_dim + layer.index_dim // INDEX_SCALE_BLOCK * 4
        return fmt.keys(1, 1, layer.rank + layer.rope_dim).total + index
    if isinstance(layer, CrossAttention):
        raise BadValue("Attention over an encoder has a pool of its own, which is not modelled.")
    return 0
