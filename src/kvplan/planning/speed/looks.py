"""Attention as work: what one context token of one sequence costs in the layers that see it."""

from __future__ import annotations

from typing import Final, NamedTuple

from kvplan.core.compressed import CompressedAttention
from kvplan.core.cross import CrossAttention
from kvplan.core.hidden import HiddenStates
from kvplan.core.latent import IndexedLatentAttention, LatentAttention
from kvplan.core.layers import FullAttention, Layer
from kvplan.core.model import Model
from kvplan.core.states import RecurrentState
from kvplan.planning.speed.cut import Cut

# Kernels of a layer beside one of grouped-query attention and a dense network, which has about ten:
# latent attention projects down and up again (q_a, q_b, kv_a, two absorbed products), recurrent
# mixers convolve, gate and update.
MORE_KERNELS: Final = 1.5
INDEX_BYTES: Final = 1.0  # indexers keep their keys in 8 bits (DeepSeek V3.2, vLLM 0.32.0)


class Look(NamedTuple):
    """Layers over one window, together.

    ``num_bytes`` of a context token that a decoding sequence reads, ``decode_flops`` it computes
    with it, and ``pair_flops`` of one query and key pair of a prefill; of one rank.
    """

    window: int | None
    num_bytes: float
    decode_flops: float
    pair_flops: float


def looks_of(model: Model, cut: Cut) -> tuple[Look, ...]:
    """The model's attention on one rank, grouped by window, the unbounded first."""
    found: dict[int | None, list[float]] = {}
    for layer, count in model.layers():
        for look in _looks(layer.on_rank(cut.tp), model, cut.kv_bytes):
            total = found.setdefault(look.window, [0.0, 0.0, 0.0])
            for place, figure in enumerate(look[1:]):
                total[place] += figure * count
    order = sorted(found, key=lambda window: -1 if window is None else window)
    return tuple(Look(window, *found[window]) for window in order if any(found[window]))


def state_bytes(model: Model, cut: Cut) -> float:
    """Bytes of the states that one sequence reads and writes back in a step, and of what it reads
    of an encoder.
    """
    total = 0.0
    for layer, count in model.layers():
        shared = layer.on_rank(cut.tp)
        if isinstance(shared, RecurrentState):
            total += 2 * count * sum(tensor.num_bytes for tensor in shared.tensors)
        elif isinstance(shared, CrossAttention):
            row = shared.kv_heads * (shared.key_dim + shared.value_dim)
            total += count * shared.encoder_tokens * row * cut.kv_bytes
    return total


def kernel_layers(model: Model) -> float:
    """The layers, each counted by its kernels."""
    total = 0.0
    for block, count in model.blocks.counted():
        many = any(isinstance(layer, LatentAttention | RecurrentState) for layer in block)
        total += count * (MORE_KERNELS if many else 1.0)
    return max(1.0, total)


def _looks(layer: Layer, model: Model, kv_bytes: float) -> list[Look]:
    if isinstance(layer, IndexedLatentAttention):
        return _indexed(layer, model, kv_bytes)
    if isinstance(layer, LatentAttention):
        return [_latent(layer, layer.window, kv_bytes)]
    if isinstance(layer, CompressedAttention):
        return _compressed(layer, kv_bytes)
    if isinstance(layer, FullAttention):
        return [_headed(layer, model, kv_bytes)]
    if isinstance(layer, HiddenStates):
        return [Look(layer.window, layer.width * layer.element_bytes, 0, 0)]
    return []


def _headed(layer: FullAttention, model: Model, kv_bytes: float) -> Look:
    """Keys and values of each KV head; scores and sums of each query head."""
    width = layer.key_dim + layer.value_dim
    row = layer.kv_heads * width * kv_bytes + layer.index_dim * (layer.index_bytes or INDEX_BYTES)
    flops = 2.0 * max(layer.query_heads, 1) * width
    return Look(layer.window, row, flops, flops)


def _latent(layer: LatentAttention, window: int | None, kv_bytes: float) -> Look:
    """Decoding in the latent space (every head over the one row), prefill over keys made of it."""
    heads = layer.query_heads
    decode = 2.0 * heads * (2 * layer.rank + layer.rope_dim)
    prefill = 2.0 * heads * (layer.head_key_dim + layer.head_value_dim)
    return Look(window, (layer.rank + layer.rope_dim) * kv_bytes, decode, prefill)


def _indexed(layer: IndexedLatentAttention, model: Model, kv_bytes: float) -> list[Look]:
    """Latent rows of the tokens that the indexer picks; its keys of all."""
    picked = _latent(layer, model.traits.index_topk or None, kv_bytes)
    # A sparse prefill runs in the latent space, as decoding does.
    picked = picked._replace(pair_flops=picked.decode_flops)
    index = layer.index_dim * (layer.index_bytes or INDEX_BYTES)
    return [picked, Look(None, index, 0, 0)]


def _compressed(layer: CompressedAttention, kv_bytes: float) -> list[Look]:
    """The window whole, and one entry a group of the rest."""
    row = layer.dim * kv_bytes
    entry = (row + layer.index_dim * INDEX_BYTES) / layer.ratio
    return [Look(layer.size, row, 0, 0), Look(None, entry, 0, 0)]
