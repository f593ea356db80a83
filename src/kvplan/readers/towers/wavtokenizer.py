"""WavTokenizer's encoder: stages that halve the rate, then an LSTM.

The rules are those of transformers 5.24.0, models/wavtokenizer/modeling_wavtokenizer.py; the
codebook is a buffer there, no parameter.
"""

from __future__ import annotations

from kvplan.core.errors import BadFile
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Weights

MOST_STAGES = 16


def wavtokenizer(c: Config) -> Weights:
    """Each stage: residual blocks, and a convolution to twice the channels."""
    ratios, width = c.wholes("upsampling_ratios", least=1), c.whole("num_filters")
    if len(ratios) > MOST_STAGES:
        raise BadFile(f"The config's upsampling_ratios are more than {MOST_STAGES}.")
    found = convolution(c, c.whole("audio_channels"), width, c.whole("kernel_size"))
    for ratio in reversed(ratios):
        found += parts.repeat(residual(c, width), c.layers("num_residual_layers"))
        found += convolution(c, width, 2 * width, 2 * ratio)
        width *= 2
    lstm = (*parts.linear("", width, 4 * width, count=2), *parts.scalar(4 * width, 2))
    return (
        *found,
        *parts.repeat(lstm, c.layers("num_lstm_layers")),
        *convolution(c, width, c.whole("hidden_size"), c.whole("last_kernel_size")),
    )


def residual(c: Config, width: int) -> Weights:
    """WavTokenizerResnetBlock: narrow, wide again, and a shortcut where it is a convolution."""
    narrow = width // c.whole("compress")
    shortcut = convolution(c, width, width, 1) if c.flag("use_conv_shortcut") else ()
    return (
        *convolution(c, width, narrow, c.whole("residual_kernel_size")),
        *convolution(c, narrow, width, 1),
        *shortcut,
    )


def convolution(c: Config, cols: int, rows: int, kernel: int) -> Weights:
    """WavTokenizerConv1d: a weight norm is one length a channel, a group norm a scale and shift."""
    lengths = 1 if c.text("norm_type") == "weight_norm" else 2
    return (*parts.convolution("", cols, rows, kernel), *parts.scalar(rows, lengths))
