"""DeepSeek V4: what a token of the full pool brings with it in the pools beside it.

    window      every layer's whole tokens, a share of the full pool's
    c4, c128    one entry each 4 or 128 tokens
    states      the ring of the unfinished group, one a page of 128 window tokens

SGLang 0.5.12, model_executor/pool_configurator.py, DSV4PoolConfigurator; later releases move the
128s' states and the window into fixed parts, which are not modelled.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from kvplan.core.compressed import CompressedAttention
from kvplan.core.layers import Layer

if TYPE_CHECKING:
    from kvplan.engines.sglang.settings import Settings

ROTARY: Final = 64  # kept in 16 bits; the rest of a row is fp8
SCALES: Final = 8
FLOAT32: Final = 4
RINGS: Final = {4: 8, 128: 128}  # rows of a state's ring; twice as many with speculation


def compressed_cell(layers: Iterable[tuple[Layer, int]], settings: Settings) -> float:
    """Bytes of a full token; 0 for a model that compresses nothing."""
    found, depth = 0.0, 0
    for layer, count in layers:
        if isinstance(layer, CompressedAttention):
            found += _layer(layer, settings) * count
            depth += count
    if depth and settings.draft_layers:
        found *= (depth + 1) / depth
    return found


def _layer(layer: CompressedAttention, settings: Settings) -> float:
    row = layer.dim + ROTARY + SCALES
    index = layer.index_dim + layer.index_dim // 128 * FLOAT32
    ring = RINGS.get(layer.ratio, layer.ratio) * (2 if settings.speculative else 1)
    # A group that overlaps the one before it keeps keys and gates of both.
    doubled = 2 if layer.index_dim and layer.overlaps else 1
    state = 2 * doubled * (layer.dim + layer.index_dim) * FLOAT32
    share = settings.window_ratio
    return share * row + (row + index) / layer.ratio + share * ring / layer.size * state
