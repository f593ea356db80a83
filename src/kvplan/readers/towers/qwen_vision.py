"""The vision encoders of the Qwen models: patches of several frames, blocks, a merger.

Cited files are those of transformers 5.24.0. A merger joins the patches of a square into one vector
and projects it to the width of the language model.
"""

from __future__ import annotations

from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Weights
from kvplan.readers.towers import vit


def qwen2(c: Config) -> Weights:
    """models/qwen2_vl/modeling_qwen2_vl.py: ``hidden_size`` is what the merger puts out."""
    width = c.whole("embed_dim")
    inner = int(width * c.number("mlp_ratio"))
    return (
        *frame_patches(c, width, bias=False),
        *vit.blocks(width, inner, c.layers("depth")),
        *merger(c, width, c.whole("hidden_size"), parts.norm(width, "layer")),
    )


def qwen2_5(c: Config) -> Weights:
    """models/qwen2_5_vl/modeling_qwen2_5_vl.py: gated networks and RMS norms."""
    width = c.whole("hidden_size")
    return (
        *frame_patches(c, width, bias=False),
        *vit.blocks(width, c.whole("intermediate_size"), c.layers("depth"), norm="rms", gated=True),
        *merger(c, width, c.whole("out_hidden_size"), parts.norm(width)),
    )


def exaone4_5(c: Config) -> Weights:
    """models/exaone4_5/modeling_exaone4_5.py: Qwen 2.5's with fewer KV heads."""
    width, heads = c.whole("hidden_size"), c.whole("num_heads")
    return (
        *frame_patches(c, width, bias=False),
        *vit.blocks(
            width,
            c.whole("intermediate_size"),
            c.layers("depth"),
            norm="rms",
            gated=True,
            heads=heads,
            kv_heads=c.whole("num_key_value_heads"),
        ),
        *merger(c, width, c.whole("out_hidden_size"), parts.norm(width)),
    )


def qwen3_5(c: Config) -> Weights:
    """models/qwen3_5/modeling_qwen3_5.py: learned positions."""
    width = c.whole("hidden_size")
    return (
        *frame_patches(c, width, bias=True),
        *parts.embedding(c.whole("num_position_embeddings"), width),
        *vit.blocks(width, c.whole("intermediate_size"), c.layers("depth")),
        *merger(c, width, c.whole("out_hidden_size"), parts.norm(width, "layer")),
    )


def qwen3(c: Config) -> Weights:
    """models/qwen3_vl/modeling_qwen3_vl.py: one more merger for each layer of ``deepstack``.

    Those normalise the joined patches, so their norms are as wide as a square of them.
    """
    width = c.whole("hidden_size")
    joined = width * c.whole("spatial_merge_size") ** 2
    deep = merger(c, width, c.whole("out_hidden_size"), parts.norm(joined, "layer"))
    return qwen3_5(c) + parts.repeat(deep, len(c.wholes("deepstack_visual_indexes")))


def frame_patches(c: Config, width: int, bias: bool) -> Weights:
    """The convolution that turns a patch of several frames into a vector."""
    patch = c.whole("patch_size")
    frames, channels = c.whole("temporal_patch_size"), c.whole("in_channels")
    return parts.convolution("", channels, width, frames, patch, patch, bias=bias)


def merger(c: Config, width: int, out: int, norm: Weights) -> Weights:
    """A norm, and two projections of the joined patches of a square."""
    joined = width * c.whole("spatial_merge_size") ** 2
    return (
        *norm,
        *parts.linear("", joined, joined, bias=True),
        *parts.linear("", joined, out, bias=True),
    )
