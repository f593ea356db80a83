"""Parakeet's conformer: convolutions that halve time and pitch, then blocks of four parts.

models/parakeet/modeling_parakeet.py (transformers 5.24.0), ParakeetEncoder.
"""

from __future__ import annotations

from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Weights


def parakeet(c: Config) -> Weights:
    """Subsampling, a projection and the blocks."""
    width = c.whole("hidden_size")
    return (*subsampling(c, width), *parts.repeat(block(c, width), c.layers()))


def subsampling(c: Config, width: int) -> Weights:
    """A convolution, then pairs of a depthwise and a pointwise one for each further halving."""
    channels, kernel = c.whole("subsampling_conv_channels"), c.whole("subsampling_conv_kernel_size")
    halvings = c.whole("subsampling_factor").bit_length() - 1
    stride = c.whole("subsampling_conv_stride")
    pitches = c.whole("num_mel_bins") // stride**halvings
    pair = (
        *parts.convolution("", channels, channels, kernel, kernel, groups=channels),
        *parts.convolution("", channels, channels, 1, 1),
    )
    return (
        *parts.convolution("", 1, channels, kernel, kernel),
        *parts.repeat(pair, max(0, halvings - 1)),
        *parts.linear("", channels * pitches, width, bias=True),
    )


def block(c: Config, width: int) -> Weights:
    """Half a network, attention with relative positions, a convolution, half a network."""
    heads, bias = c.whole("num_attention_heads"), c.flag("attention_bias")
    dim = c.whole("head_dim", max(1, width // heads))
    network = parts.mlp(width, c.whole("intermediate_size"), gated=False, bias=bias)
    return (
        *parts.repeat(network, 2),
        *parts.attention(width, heads, heads, dim, bias=bias),
        *parts.linear("", width, heads * dim),
        *parts.scalar(heads * dim, 2),
        *convolution(c, width),
        *parts.norm(width, "layer", 5),
    )


def convolution(c: Config, width: int) -> Weights:
    """Pointwise to twice the width, depthwise after its gate, a batch norm, pointwise."""
    bias, kernel = c.flag("convolution_bias"), c.whole("conv_kernel_size")
    return (
        *parts.convolution("", width, 2 * width, 1, bias=bias),
        *parts.convolution("", width, width, kernel, bias=bias, groups=width),
        *parts.norm(width, "layer"),
        *parts.convolution("", width, width, 1, bias=bias),
    )
