"""LFM 3's vision encoder: gated convolutions over the image, attention in some layers.

The rules are those of transformers 5.24.0, models/lfm3_vl/configuration_lfm3_vl.py and
modeling_lfm3_vl.py.
"""

from __future__ import annotations

from kvplan.core import weights as w
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Weights, layer_kinds


def lfm3(c: Config) -> Weights:
    """Flat patches of frames, a norm, layers named in ``layer_types``."""
    width, depth = c.whole("hidden_size"), c.layers()
    patch = c.whole("in_channels") * c.whole("temporal_patch_size") * c.whole("patch_size") ** 2
    derived = ["conv" if place < 2 or place % 2 else "full_attention" for place in range(depth)]
    convolved = layer_kinds(c, depth, derived).count("conv")
    layer = (*parts.mlp(width, c.whole("intermediate_size")), *parts.norm(width, count=2))
    return (
        *parts.linear("", patch, width),
        *parts.norm(width),
        *parts.repeat(layer, depth),
        *parts.repeat(convolution(c), convolved),
        *parts.repeat(attention(c), depth - convolved),
    )


def convolution(c: Config) -> Weights:
    """Lfm3VlVisionShortConv: three projections in one, a convolution a channel, one out."""
    width, side = c.whole("hidden_size"), c.whole("conv_kernel_size")
    return (
        *parts.linear(w.STATE_IN, width, 3 * width),
        *parts.convolution(w.STATE, width, width, side, side, bias=False, groups=width),
        *parts.linear(w.STATE_OUT, width, width),
    )


def attention(c: Config) -> Weights:
    """Lfm3VlVisionAttention: norms of each head's queries and keys."""
    width, heads = c.whole("hidden_size"), c.whole("num_attention_heads")
    kv = c.whole("num_key_value_heads")
    return parts.attention(width, heads, kv, max(1, width // heads), qk_norm="head")
