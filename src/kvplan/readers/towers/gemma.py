"""Gemma's own encoders: of images since Gemma 4, of sound since Gemma 3n.

The cited files are those of transformers 5.24.0. A clipped linear map keeps its bounds as buffers.
"""

from __future__ import annotations

from kvplan.core.errors import BadFile
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Weights
from kvplan.readers.towers import vit

CONVOLUTIONS = 2  # Gemma3nAudioSubSampleConvProjection


def gemma4_vision(c: Config) -> Weights:
    """models/gemma4/modeling_gemma4.py, Gemma4VisionModel: positions by row and by column."""
    width = c.whole("hidden_size")
    return (
        *parts.linear("", 3 * c.whole("patch_size") ** 2, width),
        *parts.embedding(2 * c.whole("position_embedding_size"), width),
        *vit.blocks(
            width,
            c.whole("intermediate_size"),
            c.layers(),
            bias=False,
            norm="rms",
            norms=4,
            gated=True,
            heads=c.whole("num_attention_heads"),
            kv_heads=c.whole("num_key_value_heads"),
            head_dim=c.whole("head_dim"),
            qk_norm="head",
        ),
    )


def gemma4_audio(c: Config) -> Weights:
    """models/gemma4/modeling_gemma4.py, Gemma4AudioModel: two convolutions, then conformers."""
    channels = c.wholes("subsampling_conv_channels", least=1)
    if len(channels) != CONVOLUTIONS:
        raise BadFile("The config's subsampling_conv_channels are not two numbers of channels.")
    first, second = channels
    width = c.whole("hidden_size")
    return (
        *parts.convolution("", 1, first, 3, 3, bias=False),
        *parts.norm(first),
        *parts.convolution("", first, second, 3, 3, bias=False),
        *parts.norm(second),
        *parts.linear("", first // 4 * second, width),
        *parts.repeat(
            conformer(width, c.whole("num_attention_heads"), c.whole("conv_kernel_size")),
            c.layers(),
        ),
        *parts.linear("", width, c.whole("output_proj_dims"), bias=True),
    )


def gemma3n_audio(c: Config) -> Weights:
    """models/gemma3n/modeling_gemma3n.py, Gemma3nAudioEncoder."""
    width = c.whole("hidden_size")
    block = conformer(width, c.whole("conf_num_attention_heads"), c.whole("conf_conv_kernel_size"))
    return (*subsampling(c), *parts.repeat(block, c.layers("conf_num_hidden_layers")))


def subsampling(c: Config) -> Weights:
    """Two convolutions over time and frequency, and a projection of what is left of both."""
    channels, kernels = (
        c.wholes("sscp_conv_channel_size", least=1),
        pairs(c, "sscp_conv_kernel_size"),
    )
    strides = pairs(c, "sscp_conv_stride_size")
    if min(len(channels), len(kernels), len(strides)) < CONVOLUTIONS:
        raise BadFile("The config's sscp_conv_* keys do not describe two convolutions.")
    found: Weights = ()
    cols, left = 1, c.whole("input_feat_size")
    for rows, kernel, stride in zip(channels, kernels, strides, strict=False):
        found += parts.convolution("", cols, rows, *kernel, bias=False) + parts.norm(rows)
        left = max(0, left + 2 - kernel[1]) // stride[1] + 1
        cols = rows
    return found + parts.linear("", cols * left, c.whole("hidden_size"))


def pairs(c: Config, key: str) -> list[tuple[int, int]]:
    """A list of pairs of positive numbers."""
    found = c.value(key)
    if not isinstance(found, list) or len(found) != CONVOLUTIONS:
        raise BadFile(f"The config's {key} is not a list of two pairs.")
    for pair in found:
        whole = (
            isinstance(pair, list) and len(pair) == 2 and all(type(side) is int for side in pair)
        )
        if not whole or min(pair) < 1:
            raise BadFile(f"The config's {key} is not a list of two pairs of positive numbers.")
    return [(pair[0], pair[1]) for pair in found]


def conformer(width: int, heads: int, kernel: int) -> Weights:
    """Two halves of a network around an attention with relative positions and a convolution."""
    half = parts.mlp(width, 4 * width, gated=False)
    return (
        *parts.repeat(half, 2),
        *parts.attention(width, 1, 1, width),
        *parts.linear("", width, width),
        *parts.scalar(width // heads),
        *parts.linear("", width, 2 * width),
        *parts.convolution("", width, width, kernel, bias=False, groups=width),
        *parts.linear("", width, width),
        *parts.norm(width, count=9),
    )
