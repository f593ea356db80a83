"""Conformers: a half network, attention, a convolution and another half network a block.

The rules are those of transformers 5.24.0, in the file that each function names.
"""

from __future__ import annotations

from kvplan.core import weights as w
from kvplan.core.errors import BadFile
from kvplan.core.weights import Weight
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Weights

MOST_HALVINGS = 16


def granite(c: Config) -> Weights:
    """A CTC encoder whose guess at mid-depth is fed back (models/granite_speech)."""
    width, out = c.whole("hidden_dim"), c.whole("output_dim")
    return (
        *parts.linear("", c.whole("input_dim"), width, bias=True),
        *parts.repeat(_granite_block(c, width), c.layers("num_layers")),
        *parts.linear("", width, out, bias=True),
        *parts.linear("", out, width, bias=True),
    )


def _granite_block(c: Config, width: int) -> Weights:
    heads = c.whole("num_heads")
    dim = c.whole("dim_head", max(1, width // heads))
    inner, wide = width * c.whole("feedforward_mult"), width * c.whole("conv_expansion_factor")
    half = (*parts.norm(width, "layer"), *parts.mlp(width, inner, gated=False, bias=True))
    return (
        *parts.repeat(half, 2),
        *parts.norm(width, "layer"),
        *parts.attention(width, heads, heads, dim, out_bias=True),
        *parts.embedding(2 * c.whole("max_pos_emb") + 1, dim),
        *parts.norm(width, "layer"),
        *parts.convolution("", width, 2 * wide, 1),
        *parts.convolution("", wide, wide, c.whole("conv_kernel_size"), bias=False, groups=wide),
        *parts.norm(wide, "layer"),
        *parts.convolution("", wide, width, 1),
        *parts.norm(width, "layer"),
    )


def phi4(c: Config) -> Weights:
    """Phi-4's speech encoder, with a bias by distance (models/phi4_multimodal)."""
    width, channels = c.whole("hidden_size"), c.whole("nemo_conv_channels")
    halvings, features = _halvings(c)
    later = (
        *parts.convolution("", channels, channels, 3, 3, groups=channels),
        *parts.convolution("", channels, channels, 1, 1),
    )
    buckets = c.whole("bias_max_distance") * (1 if c.flag("bias_symmetric") else 2)
    return (
        *parts.convolution("", 1, channels, 3, 3),
        *parts.repeat(later, halvings - 1),
        *parts.linear("", channels * features, width, bias=True),
        *parts.embedding(buckets, c.whole("num_attention_heads")),
        *parts.repeat(_phi4_block(c, width), c.layers("num_blocks")),
    )


def _halvings(c: Config) -> tuple[int, int]:
    """How often frames and features are halved, and the features then left (rounded up)."""
    reduction, features = c.whole("time_reduction", least=2), c.whole("input_size")
    halvings = reduction.bit_length() - 1
    if halvings > MOST_HALVINGS:
        raise BadFile(
            f"The config's audio_config.time_reduction is {reduction}, which is too large."
        )
    for _ in range(halvings):
        features = (features + 1) // 2
    return halvings, features


def _phi4_block(c: Config, width: int) -> Weights:
    heads, inner = c.whole("num_attention_heads"), c.whole("intermediate_size")
    dim = c.whole("head_dim", max(1, width // heads))
    out, wide = c.whole("ext_pw_out_channel"), width * c.whole("depthwise_multiplier")
    half = (*parts.norm(width, "layer"), *parts.mlp(width, inner, bias=True))
    return (
        *parts.repeat(half, 2),
        *parts.attention(width, heads, heads, dim, bias=True),
        *parts.norm(width, "layer", 3),
        *parts.convolution("", width, 2 * out, 1),
        Weight(w.BIAS, out, 1, 2),
        *parts.convolution("", width, wide, c.whole("kernel_size"), groups=width),
        *parts.convolution("", wide, c.whole("depthwise_separable_out_channel"), 1),
        *parts.convolution("", width, out, 1),
    )
