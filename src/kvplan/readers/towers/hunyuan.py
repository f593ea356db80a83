"""The vision encoders of the HunYuan models: patches, positions, blocks, a merger of convolutions.

The cited files are those of transformers 5.24.0.
"""

from __future__ import annotations

from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Weights
from kvplan.readers.towers import vit


def hunyuan_vl(c: Config) -> Weights:
    """models/hunyuan_vl/modeling_hunyuan_vl.py; ``text_hidden_size`` is the text model's width."""
    width, out, side = (
        c.whole("hidden_size"),
        c.whole("text_hidden_size"),
        c.whole("spatial_merge_size"),
    )
    return (
        *body(c),
        *parts.convolution("", width, 2 * width, side, side),
        *parts.convolution("", 2 * width, 4 * width, 1, 1),
        *parts.linear("", 4 * width, out, bias=True),
        *parts.scalar(4 * width),
        *parts.scalar(out, 3),
        *parts.norm(width),
        *parts.norm(out),
    )


def hy_v4(c: Config) -> Weights:
    """models/hy_v4_vl/modeling_hy_v4_vl.py: the second convolution ends in the output's width."""
    width, out, side = (
        c.whole("hidden_size"),
        c.whole("out_hidden_size"),
        c.whole("spatial_merge_size"),
    )
    joined = width * side**2
    return (
        *body(c),
        *parts.convolution("", width, joined, side, side),
        *parts.convolution("", joined, out, 1, 1),
        *parts.scalar(out),
        *parts.norm(width),
    )


def body(c: Config) -> Weights:
    """Patches, positions of the largest image and one more, blocks."""
    width, heads = c.whole("hidden_size"), c.whole("num_attention_heads")
    side = c.whole("max_image_size") // c.whole("patch_size")
    return (
        *vit.patches(c, width),
        *parts.embedding(side**2 + 1, width),
        *vit.blocks(
            width,
            c.whole("intermediate_size"),
            c.layers(),
            heads=heads,
            head_dim=c.whole("head_dim", max(1, width // heads)),
        ),
    )
