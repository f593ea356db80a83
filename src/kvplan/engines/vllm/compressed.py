"""DeepSeek V4's pages: compressed rows, index keys, the window, and the compressors' states.

A block is 256 tokens: 64 rows where 4 tokens make one, 2 where 128 do. Every layer has a window of
its own in blocks of 64; the states of a compressor are windows too, in pages as large as its
rows'. vLLM 0.32.0, models/deepseek_v4/attention.py and compressor.py, and
v1/attention/backends/mla/sparse_swa.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kvplan.core.compressed import CompressedAttention
from kvplan.core.layers import Layer, SlidingWindow
from kvplan.core.units import round_up
from kvplan.engines.vllm.cells import element_bytes, index_bytes
from kvplan.engines.vllm.specs import LatentSpec, LatentWindowSpec, Spec

BLOCK = 256
WINDOW_BLOCK = 64
STATE_BYTES = 4  # a compressor's states are float32: an entry and its gate
SCALES = 8  # of a packed row
ROTARY = 64  # elements of a packed row that stay in 16 bits
STATE_BLOCKS = {4: 4, 128: 8}  # CompressorStateCache: as many tokens as fill a page of rows


class Row(NamedTuple):
    """One token's row, and what pages of it are rounded up to."""

    num_bytes: int
    alignment: int


def row_of(dim: int, dtype: str) -> Row:
    """Packed fp8 unless another type is asked for: 448 + 64 × 2 + 8 scales = 584 bytes of 512."""
    if dtype in ("auto", "fp8", "fp8_ds_mla"):
        return Row(dim + ROTARY + SCALES, 576)
    return Row(dim * element_bytes(dtype, 2), 512)


def specs(layer: Layer, dtype: str) -> Iterator[Spec]:
    """The specs of one layer."""
    if isinstance(layer, SlidingWindow):
        yield window(layer.key_dim, layer.size, dtype)
    elif isinstance(layer, CompressedAttention):
        yield window(layer.dim, layer.size, dtype)
        yield from entries(layer, dtype)
        yield from states(layer, dtype)


def window(dim: int, size: int, dtype: str) -> Spec:
    """The last tokens, whole."""
    row = row_of(dim, dtype)
    page = round_up(WINDOW_BLOCK * row.num_bytes, row.alignment)
    return LatentWindowSpec(
        block_size=WINDOW_BLOCK, page_bytes=page, shape=("window", dim), size=size
    )


def entries(layer: CompressedAttention, dtype: str) -> Iterator[Spec]:
    """One row for each group of tokens, and one index key."""
    row, rows = row_of(layer.dim, dtype), BLOCK // layer.ratio
    page = round_up(rows * row.num_bytes, row.alignment)
    yield LatentSpec(block_size=BLOCK, page_bytes=page, shape=("rows", layer.ratio))
    if layer.index_dim:
        page = round_up(rows * index_bytes(layer.index_dim), row.alignment)
        yield LatentSpec(block_size=BLOCK, page_bytes=page, shape=("index", layer.ratio))


def states(layer: CompressedAttention, dtype: str) -> Iterator[Spec]:
    """What a compressor keeps of the open group; of overlapping ones of the group before too."""
    overlap = 2 if layer.index_dim and layer.overlaps else 1
    block = STATE_BLOCKS.get(layer.ratio, 8)
    for dim in filter(None, (layer.dim, layer.index_dim)):
        token = overlap * 2 * dim * STATE_BYTES
        page = round_up(block * token, row_of(dim, dtype).alignment)
        yield LatentWindowSpec(
            block_size=block,
            page_bytes=page,
            shape=("state", dim, layer.ratio),
            size=overlap * layer.ratio,
        )
