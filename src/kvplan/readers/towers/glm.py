"""The vision encoders of the GLM models: patches of frames, blocks, a downsampling, a gated merger.

The cited files are those of transformers 5.24.0.
"""

from __future__ import annotations

from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Weights
from kvplan.readers.towers import vit
from kvplan.readers.towers.qwen_vision import frame_patches


def glm4v(c: Config) -> Weights:
    """models/glm4v/modeling_glm4v.py: learned positions, networks as wide as the output."""
    width, out = c.whole("hidden_size"), c.whole("out_hidden_size")
    return (
        *frame_patches(c, width, bias=True),
        *parts.embedding(vit.patch_count(c), width),
        *vit.blocks(
            width,
            out,
            c.layers("depth"),
            bias=c.flag("attention_bias"),
            out_bias=False,
            mlp_bias=False,
            norm="rms",
            gated=True,
        ),
        *parts.norm(width),
        *ending(c, c.whole("intermediate_size")),
    )


def glm_ocr(c: Config) -> Weights:
    """models/glm_ocr/modeling_glm_ocr.py: a merger of as many times the output as channels."""
    return normed(c, c.whole("out_hidden_size") * c.whole("in_channels"))


def glm5_next(c: Config) -> Weights:
    """models/glm5_next/modeling_glm5_next.py: a merger of a width of its own."""
    return normed(c, c.whole("projection_intermediate_size"))


def normed(c: Config, inner: int) -> Weights:
    """Norms of each head's queries and keys; one switch for the biases of a block."""
    width, heads = c.whole("hidden_size"), c.whole("num_heads")
    return (
        *frame_patches(c, width, bias=True),
        *vit.blocks(
            width,
            c.whole("intermediate_size"),
            c.layers("depth"),
            bias=c.flag("attention_bias"),
            norm="rms",
            gated=True,
            heads=heads,
            qk_norm="head",
        ),
        *ending(c, inner),
    )


def ending(c: Config, inner: int) -> Weights:
    """A norm, a convolution over squares of patches, and a merger ``inner`` wide."""
    width, out, side = (
        c.whole("hidden_size"),
        c.whole("out_hidden_size"),
        c.whole("spatial_merge_size"),
    )
    return (
        *parts.norm(width),
        *parts.convolution("", width, out, side, side),
        *parts.linear("", out, out),
        *parts.norm(out, "layer"),
        *parts.mlp(out, inner),
    )
