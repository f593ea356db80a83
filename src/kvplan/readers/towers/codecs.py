"""Encoders and decoders of waveforms: stages of convolutions that halve and double the rate.

The rules are those of transformers 5.24.0, in the file that each function names. A codebook that a
class keeps as a buffer is no parameter.
"""

from __future__ import annotations

import math

from kvplan.core.errors import BadFile
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Weights

MOST_STAGES = 16
# models/mimi/configuration_mimi.py, MimiConfig.__post_init__.
MIMI_RATIOS = (8, 6, 5, 4)


def vibevoice_encoder(c: Config) -> Weights:
    """ConvNeXt stages, each twice as wide (models/vibevoice_acoustic_tokenizer)."""
    ratios, filters, kernel = _ratios(c, "downsampling_ratios"), *_stem(c)
    found = parts.convolution("", c.whole("channels"), filters, kernel)
    for stage, ratio in enumerate(ratios):
        width = filters << stage
        found += parts.convolution("", width, 2 * width, 2 * ratio)
    found += parts.convolution("", filters << len(ratios), c.whole("hidden_size"), kernel)
    return found + _vibevoice_stages(c, len(ratios))


def vibevoice_decoder(c: Config) -> Weights:
    """The same stages in the other order, with transposed convolutions."""
    ratios, filters, kernel = _ratios(c, "downsampling_ratios"), *_stem(c)
    found = parts.convolution("", c.whole("hidden_size"), filters << len(ratios), kernel)
    for stage, ratio in enumerate(ratios):
        width = filters << stage
        found += parts.convolution("", 2 * width, width, 2 * ratio)
    found += parts.convolution("", filters, c.whole("channels"), kernel)
    return found + _vibevoice_stages(c, len(ratios))


def vibevoice(c: Config) -> Weights:
    """Encoder and decoder."""
    return vibevoice_encoder(c) + vibevoice_decoder(c)


def _stem(c: Config) -> tuple[int, int]:
    return c.whole("num_filters"), c.whole("kernel_size")


def _vibevoice_stages(c: Config, count: int) -> Weights:
    depths, kernel = c.wholes("depths"), c.whole("kernel_size")
    if len(depths) != count + 1:
        raise BadFile(
            f"The config's {c.path}.depths names {len(depths)} stages, and downsampling_ratios "
            f"makes {count + 1}."
        )
    found: Weights = ()
    for stage, depth in enumerate(depths):
        width = c.whole("num_filters") << stage
        block = (
            *parts.convolution("", width, width, kernel, groups=width),
            *parts.mlp(width, c.whole("ffn_expansion") * width, gated=False, bias=True),
            *parts.norm(width, count=2),
            *parts.scalar(width, 2),
        )
        found += parts.repeat(block, depth)
    return found


def mimi(c: Config) -> Weights:
    """Convolutions and a transformer each way, a split quantiser between (models/mimi)."""
    width, projected = c.whole("hidden_size"), c.whole("vector_quantization_hidden_dimension")
    found = (
        *_seanet(c),
        *parts.repeat(_mimi_transformer(c), 2),
        *_resampling(c),
    )
    if projected != width:
        found += parts.linear("", width, projected, count=4)
    return found


def _seanet(c: Config) -> Weights:
    """Encoder and decoder: stages of residual blocks and one convolution of either kind."""
    ratios, filters = _ratios(c, "upsampling_ratios", MIMI_RATIOS), c.whole("num_filters")
    first, last = c.whole("kernel_size"), c.whole("last_kernel_size")
    channels, width, top = c.whole("audio_channels"), c.whole("hidden_size"), filters << len(ratios)
    found: Weights = (
        *parts.convolution("", channels, filters, first),
        *parts.convolution("", top, width, last),
        *parts.convolution("", width, top, first),
        *parts.convolution("", filters, channels, last),
    )
    for stage, ratio in enumerate(reversed(ratios)):
        scale = filters << stage
        found += parts.repeat(_residual(c, scale), 2 * c.whole("num_residual_layers", least=0))
        found += parts.convolution("", scale, 2 * scale, 2 * ratio)
        found += parts.convolution("", 2 * scale, scale, 2 * ratio)
    return found


def _residual(c: Config, width: int) -> Weights:
    narrow = width // c.whole("compress")
    found = (
        *parts.convolution("", width, narrow, c.whole("residual_kernel_size")),
        *parts.convolution("", narrow, width, 1),
    )
    if c.flag("use_conv_shortcut"):
        found += parts.convolution("", width, width, 1)
    return found


def _mimi_transformer(c: Config) -> Weights:
    width, query = c.whole("hidden_size"), c.whole("num_attention_heads")
    dim = c.whole("head_dim", 0, least=0) or max(1, width // query)
    one = (
        *parts.attention(
            width, query, c.whole("num_key_value_heads"), dim, bias=c.flag("attention_bias")
        ),
        *parts.mlp(width, c.whole("intermediate_size"), gated=False),
        *parts.norm(width, "layer", 2),
        *parts.scalar(width, 2),
    )
    return parts.repeat(one, c.layers())


def _resampling(c: Config) -> Weights:
    """Between the convolutions' rate and the codec's, where those differ.

    models/mimi/configuration_mimi.py: ``frame_rate`` is half the convolutions' where absent.
    """
    hop = math.prod(_ratios(c, "upsampling_ratios", MIMI_RATIOS))
    inner = math.ceil(c.whole("sampling_rate") / hop)
    rate = c.number("frame_rate", c.whole("sampling_rate") / (2 * hop))
    if rate == inner or rate <= 0:
        return ()
    width, kernel = c.whole("hidden_size"), 2 * int(inner / rate)
    down = parts.convolution("", width, width, kernel, bias=False)
    return down + parts.convolution(
        "", width, width, kernel, bias=False, groups=c.whole("upsample_groups")
    )


def _ratios(c: Config, key: str, default: tuple[int, ...] = ()) -> list[int]:
    """The factors by which the stages change the rate.

    Raises:
        BadFile: more of them than any codec has.
    """
    found = c.wholes(key, default, least=1) or list(default)
    if len(found) > MOST_STAGES:
        raise BadFile(f"The config's {c.path}.{key} names {len(found)} stages.")
    return found
