"""What makes a waveform of the codes that Qwen Omni's talker puts out.

The rules are those of transformers 5.24.0, in the file that each function names.
"""

from __future__ import annotations

from itertools import pairwise

from kvplan.core.errors import BadFile
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Weights
from kvplan.readers.families.vision import projections
from kvplan.readers.towers import vit

MOST_STAGES = 16
STEP_FEATURES = 256  # DiTTimestepEmbedding
DILATIONS = 3  # convolutions of either kind in an AMPBlock, units in a DecoderBlock


def token2wav(c: Config) -> Weights:
    """models/qwen2_5_omni/modeling_qwen2_5_omni.py: codes to a spectrogram, that to a waveform."""
    return diffusion(c.section("dit_config")) + bigvgan(c.section("bigvgan_config"))


def diffusion(c: Config) -> Weights:
    """Qwen2_5OmniToken2WavDiTModel: blocks that the time step modulates."""
    width, mel = c.whole("hidden_size"), c.whole("mel_dim")
    heads, codes = c.whole("num_attention_heads"), c.whole("emb_dim")
    known = mel + c.whole("enc_dim") + c.whole("enc_emb_dim") + codes
    block = (
        *parts.linear("", width, 6 * width, bias=True),
        *parts.attention(width, heads, heads, c.whole("head_dim"), bias=True),
        *parts.mlp(width, int(width * c.number("ff_mult")), gated=False, bias=True),
    )
    return (
        *projections(STEP_FEATURES, width, width),
        *parts.embedding(c.whole("num_embeds") + 1, codes),
        *projections(known, width),
        *speaker(c, mel),
        *parts.repeat(block, c.layers()),
        *projections(width, 2 * width),
        *projections(width, mel),
    )


def speaker(c: Config, mel: int) -> Weights:
    """ECAPA_TimeDelayNet: who speaks, from a spectrogram."""
    widths, kernels = _stages(c, "enc_channels"), _stages(c, "enc_kernel_sizes")
    if len(widths) != len(kernels) or len(widths) < 2:
        raise BadFile(f"The config's {c.path}.enc_channels and enc_kernel_sizes do not match.")
    last, attention = widths[-1], c.whole("enc_attention_channels")
    found = parts.convolution("", mel, widths[0], kernels[0])
    for (into, out), kernel in zip(pairwise(widths[:-1]), kernels[1:-1], strict=True):
        found += _excited(c, into, out, kernel)
    return (
        *found,
        *parts.convolution("", last, last, kernels[-1]),
        *projections(3 * last, attention, last),
        *projections(2 * last, c.whole("enc_dim")),
    )


def _excited(c: Config, into: int, out: int, kernel: int) -> Weights:
    """SqueezeExcitationRes2NetBlock: convolutions over parts of the channels, then a gate."""
    scale = c.whole("enc_res2net_scale")
    part = out // scale
    return (
        *projections(into, out),
        *parts.repeat(parts.convolution("", part, part, kernel), scale - 1),
        *projections(out, out),
        *projections(out, c.whole("enc_se_channels"), out),
    )


def bigvgan(c: Config) -> Weights:
    """Qwen2_5OmniToken2WavBigVGANModel: each stage doubles the rate and halves the channels."""
    width, kernels = c.whole("upsample_initial_channel"), _stages(c, "upsample_kernel_sizes")
    found = parts.convolution("", c.whole("mel_dim"), width, 7)
    for stage, kernel in enumerate(kernels):
        narrow = width >> (stage + 1)
        found += parts.convolution("", width >> stage, narrow, kernel)
        for inner in _stages(c, "resblock_kernel_sizes"):
            found += parts.repeat(parts.convolution("", narrow, narrow, inner), 2 * DILATIONS)
            found += parts.scalar(narrow, 4 * DILATIONS)
    end = width >> len(kernels)
    return (*found, *parts.scalar(end, 2), *parts.convolution("", end, 1, 7, bias=False))


def code2wav(c: Config) -> Weights:
    """models/qwen3_omni_moe/modeling_qwen3_omni_moe.py, Qwen3OmniMoeCode2Wav."""
    width, wide, rates = (
        c.whole("hidden_size"),
        c.whole("decoder_dim"),
        _stages(c, "upsample_rates"),
    )
    found = (
        *_transformer(c, width),
        *parts.embedding(c.whole("codebook_size") * c.whole("num_quantizers"), width),
        *parts.convolution("", width, wide, 7),
    )
    for factor in _stages(c, "upsampling_ratios"):
        found += parts.convolution("", width, width, factor) + _conv_next(width)
    for stage, rate in enumerate(rates):
        found += _decoder_block(wide >> stage, wide >> (stage + 1), 2 * rate)
    end = wide >> len(rates)
    return (*found, *parts.scalar(end, 2), *parts.convolution("", end, 1, 7))


def _transformer(c: Config, width: int) -> Weights:
    heads = c.whole("num_attention_heads")
    blocks = vit.blocks(
        width,
        c.whole("intermediate_size"),
        c.layers(),
        bias=c.flag("attention_bias"),
        mlp_bias=False,
        norm="rms",
        gated=True,
        heads=heads,
        kv_heads=c.whole("num_key_value_heads", heads),
        head_dim=c.whole("head_dim", max(1, width // heads)),
        scales=2,
    )
    return blocks + parts.norm(width)


def _conv_next(width: int) -> Weights:
    return (
        *parts.convolution("", width, width, 7, groups=width),
        *parts.norm(width, "layer"),
        *projections(width, 4 * width, width),
        *parts.scalar(width),
    )


def _decoder_block(wide: int, narrow: int, kernel: int) -> Weights:
    unit = (
        *parts.scalar(narrow, 4),
        *parts.convolution("", narrow, narrow, 7),
        *parts.convolution("", narrow, narrow, 1),
    )
    return (
        *parts.scalar(wide, 2),
        *parts.convolution("", wide, narrow, kernel),
        *parts.repeat(unit, DILATIONS),
    )


def _stages(c: Config, key: str) -> list[int]:
    found = c.wholes(key, least=1)
    if len(found) > MOST_STAGES:
        raise BadFile(f"The config's {c.path}.{key} names {len(found)} stages.")
    return found
