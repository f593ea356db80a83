"""The buffers of the graph and of the logits.

    output, host     slots × vocabulary × 4 B
    graph, host      the batch's embeddings, and a mask of 4 B a batch token and cell
    graph, card      the larger of: logits of the batch, or scores and activations of one block;
                     and a copy of the largest weights in host memory, for a large batch

The output buffer is exact (src/llama-context.cpp, output_reserve, b11434). The graph's are what
ggml's allocator finds over the whole graph: their parts are known and how they overlap is not, so
they have an error, measured on start-up reports (tests/engines/llamacpp/test_buffers.py).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from kvplan.core import weights as w
from kvplan.core.latent import LatentAttention
from kvplan.core.layers import FLOAT32_BYTES, FullAttention
from kvplan.core.model import Model
from kvplan.core.units import MIB
from kvplan.engines.llamacpp.caches import Caches
from kvplan.engines.llamacpp.settings import Settings

LOGIT_ROWS: Final = 2  # activations beside the logits, in rows of the model's width
BLOCK_ROWS: Final = 3
CARD_ERROR: Final = 0.25
SMALL_ERROR: Final = 8 * MIB
LATENT_ERROR: Final = 0.4  # latent rows are read back in forms that differ by device
MATRICES: Final = 4  # the largest matrix of a block is about a quarter of it
F16_BYTES: Final = 2
CARD_CONTEXT: Final = 300 * MIB  # a CUDA context with ggml's kernels, before any buffer
CARD_CONTEXT_ERROR: Final = 200 * MIB


class Estimate(NamedTuple):
    """Bytes and how far off they may be."""

    num_bytes: int
    error: int


class Shape(NamedTuple):
    """What the graph's size depends on; ``latent`` are the elements of a token's keys and values
    as they are before they are compressed, 0 where they are not.
    """

    hidden: int
    vocabulary: int
    heads: int
    widest: int
    latent: int


def shape_of(model: Model) -> Shape:
    """Widths of a model."""
    heads = latent = 0
    for layer, _ in model.layers():
        if isinstance(layer, LatentAttention):
            heads = max(heads, layer.query_heads)
            latent = layer.query_heads * (layer.head_key_dim + layer.head_value_dim)
        elif isinstance(layer, FullAttention):
            heads = max(heads, layer.query_heads)
    tensors = model.weights.tensors if model.weights else ()
    widest = max((t.rows for t in tensors if t.role in (w.MLP_IN, w.QUERY, w.STATE_IN)), default=0)
    return Shape(model.hidden_size or 0, model.vocab_size or 0, heads, widest, latent)


def output_bytes(shape: Shape, settings: Settings) -> int:
    """Logits of one token of each slot."""
    return settings.slots * shape.vocabulary * FLOAT32_BYTES


def mask_cells(caches: Caches) -> int:
    """Cells that a batch's masks cover: of the whole cache, and of the windows beside it."""
    cells = caches.settings.cells
    windows = [kept.rows.window for kept in caches.geometry.blocks.kinds if kept.rows]
    if caches.settings.window_cache and any(windows):
        cells += caches.settings.window_cells(max(windows))
    return cells


def host_bytes(shape: Shape, caches: Caches) -> Estimate:
    """Embeddings and masks of a batch in host memory."""
    ubatch = caches.settings.ubatch
    embeddings = ubatch * shape.hidden * FLOAT32_BYTES
    return Estimate(embeddings + ubatch * mask_cells(caches) * FLOAT32_BYTES, embeddings)


def card_bytes(shape: Shape, caches: Caches, *, output: bool, copied: int = 0) -> Estimate:
    """The graph on a card that holds some blocks.

    Args:
        shape: the model's widths.
        caches: their cells, and how they are stored.
        output: whether the logits are made there.
        copied: bytes of weights in host memory that a batch needs there at once.
    """
    settings = caches.settings
    ubatch = settings.ubatch
    rows = ubatch if settings.rules.every_logit else min(ubatch, settings.slots)
    logits = (rows * shape.vocabulary + LOGIT_ROWS * ubatch * shape.hidden) * output
    block = ubatch * (mask_cells(caches) + BLOCK_ROWS * shape.hidden + 2 * shape.widest)
    if not settings.flash_attention:
        block += ubatch * settings.cells * shape.heads
    found = max(logits, block) * FLOAT32_BYTES + copied
    if shape.latent and settings.mla > 1 and settings.flash_attention:
        # ik_llama.cpp: keys and values of all cells are made of the latent rows for a batch.
        found += settings.cells * shape.latent * F16_BYTES
    error = LATENT_ERROR if shape.latent else CARD_ERROR
    return Estimate(found, round(found * error) + SMALL_ERROR)
