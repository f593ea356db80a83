"""Segment Anything's image encoder: windows, some whole layers, positions relative to both.

The rules are those of transformers 5.24.0, models/sam/modeling_sam.py, which the OCR models copy.
"""

from __future__ import annotations

from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Weights
from kvplan.readers.towers import vit


def sam(c: Config) -> Weights:
    """Patches, positions, blocks with relative positions, a neck."""
    width = c.whole("hidden_size")
    found = (
        *vit.patches(c, width),
        *vit.blocks(
            width, inner(c), c.layers(), bias=c.flag("qkv_bias"), out_bias=True, mlp_bias=True
        ),
        *relative_positions(c),
        *neck(width, c.whole("output_channels")),
    )
    if c.flag("use_abs_pos"):
        found += parts.embedding((c.whole("image_size") // c.whole("patch_size")) ** 2, width)
    return found


def inner(c: Config) -> int:
    """Width of the networks: ``mlp_dim``, else by ``mlp_ratio``."""
    if c.has("mlp_dim"):
        return c.whole("mlp_dim")
    return int(c.whole("hidden_size") * c.number("mlp_ratio"))


def relative_positions(c: Config) -> Weights:
    """Two tables a layer, of all distances within its window or within the whole image."""
    if not c.flag("use_rel_pos"):
        return ()
    depth, dim = c.layers(), c.whole("hidden_size") // c.whole("num_attention_heads")
    side, window = c.whole("image_size") // c.whole("patch_size"), c.whole("window_size", least=0)
    whole = {place for place in c.wholes("global_attn_indexes") if place < depth}
    windowed = depth - len(whole) if window else 0
    return (
        *parts.scalar((2 * side - 1) * dim, 2 * (depth - windowed)),
        *parts.scalar(max(0, 2 * window - 1) * dim, 2 * windowed),
    )


def neck(width: int, out: int) -> Weights:
    """Two convolutions without biases, a norm after each."""
    return (
        *parts.convolution("", width, out, 1, 1, bias=False),
        *parts.convolution("", out, out, 3, 3, bias=False),
        *parts.norm(out, "layer", 2),
    )
