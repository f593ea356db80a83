"""Encodec: convolutions that shorten sound and lengthen it again, with an LSTM at the middle.

models/encodec/modeling_encodec.py (transformers 5.24.0). The codebooks are buffers.
"""

from __future__ import annotations

from kvplan.core.errors import BadFile
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Weights

MOST_RATIOS = 16


def encodec(c: Config) -> Weights:
    """EncodecEncoder and EncodecDecoder: the widths of one are those of the other, backwards."""
    ratios, first = c.wholes("upsampling_ratios", least=1), c.whole("num_filters")
    if len(ratios) > MOST_RATIOS:
        raise BadFile(f"The config's upsampling_ratios has more than {MOST_RATIOS} steps.")
    channels, hidden = c.whole("audio_channels"), c.whole("hidden_size")
    kernel, last = c.whole("kernel_size"), c.whole("last_kernel_size")
    widest = first << len(ratios)
    found = (
        *convolution(c, channels, first, kernel),
        *convolution(c, widest, hidden, last),
        *convolution(c, hidden, widest, kernel),
        *convolution(c, first, channels, last),
        *parts.repeat(lstm(c, widest), 2),
    )
    for step, ratio in enumerate(reversed(ratios)):
        width = first << step
        found += convolution(c, width, 2 * width, 2 * ratio)
        found += transposed(c, 2 * width, width, 2 * ratio)
        found += parts.repeat(residual(c, width), 2 * c.layers("num_residual_layers"))
    return found


def convolution(c: Config, into: int, out: int, kernel: int) -> Weights:
    """With the length of each output row under weight norm, or a norm over the outputs."""
    return parts.convolution("", into, out, kernel) + normed(c, out, out)


def transposed(c: Config, into: int, out: int, kernel: int) -> Weights:
    """Its rows are its inputs."""
    return parts.linear("", into, out * kernel) + parts.scalar(out) + normed(c, into, out)


def normed(c: Config, rows: int, out: int) -> Weights:
    """A length a row, or a scale and a shift an output."""
    kind = c.text("norm_type")
    if kind not in ("weight_norm", "time_group_norm"):
        raise BadFile(f"The config's norm_type is {kind[:40]!r}: weight_norm or time_group_norm.")
    return parts.scalar(rows) if kind == "weight_norm" else parts.norm(out, "layer")


def residual(c: Config, width: int) -> Weights:
    """Two convolutions through a narrower width, and one beside them where switched on."""
    narrow = width // c.whole("compress")
    beside = convolution(c, width, width, 1) if c.flag("use_conv_shortcut") else ()
    return (
        *convolution(c, width, narrow, c.whole("residual_kernel_size")),
        *convolution(c, narrow, width, 1),
        *beside,
    )


def lstm(c: Config, width: int) -> Weights:
    """``nn.LSTM``: four gates over the input and the state, with a bias for each."""
    one = (*parts.linear("", width, 4 * width, bias=True),)
    return parts.repeat(one, 2 * c.layers("num_lstm_layers"))
