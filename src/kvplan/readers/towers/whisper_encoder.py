"""Whisper's audio encoder and those that keep its blocks: keys have no bias.

Two convolutions over the spectrogram, positions, blocks and a norm; the second convolution halves
the frames. The rules are those of transformers 5.24.0, in the file that each function names.
"""

from __future__ import annotations

from kvplan.core import weights as w
from kvplan.core.weights import Weight
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Weights
from kvplan.readers.towers import vit

KERNEL = 3


def whisper(c: Config) -> Weights:
    """Learned positions (models/qwen2_audio, models/voxtral, models/audioflamingo3)."""
    width = c.whole("hidden_size")
    positions = parts.embedding(c.whole("max_source_positions"), width)
    return (*convolutions(c, width), *positions, *blocks(c, width), *parts.norm(width, "layer"))


def qwen2_5_omni(c: Config) -> Weights:
    """Tokens for begin and end, and a projection (models/qwen2_5_omni/modeling_qwen2_5_omni.py)."""
    width, out = c.whole("hidden_size"), c.whole("output_dim")
    return (
        *convolutions(c, width),
        *parts.embedding(2, out),
        *blocks(c, width),
        *parts.norm(width, "layer"),
        *parts.linear("", width, out, bias=True),
    )


def glm_asr(c: Config) -> Weights:
    """Rotary positions and grouped heads (models/glmasr/modeling_glmasr.py)."""
    width, query = c.whole("hidden_size"), c.whole("num_attention_heads")
    one = (
        *keyless_attention(c, width, query, c.whole("num_key_value_heads", query)),
        *parts.mlp(width, c.whole("intermediate_size"), gated=False, bias=True),
        *parts.norm(width, "layer", 2),
    )
    ending = parts.norm(width, "layer")
    return (*convolutions(c, width), *parts.repeat(one, c.layers()), *ending)


def voxtral_realtime(c: Config) -> Weights:
    """Causal: rotary positions, RMS norms, gated networks with a bias at their end.

    models/voxtral_realtime/modeling_voxtral_realtime.py.
    """
    width, heads = c.whole("hidden_size"), c.whole("num_attention_heads")
    one = (
        *keyless_attention(c, width, heads, heads),
        *parts.mlp(width, c.whole("intermediate_size")),
        Weight(w.BIAS, width),
        *parts.norm(width, count=2),
    )
    return (*convolutions(c, width), *parts.repeat(one, c.layers()), *parts.norm(width))


def qwen3_asr(c: Config) -> Weights:
    """Three convolutions over time and pitch (models/qwen3_asr/modeling_qwen3_asr.py)."""
    width, channels = c.whole("hidden_size"), c.whole("downsample_hidden_size")
    pitches = c.whole("num_mel_bins")
    for _ in range(3):
        pitches = (pitches + 1) // 2
    return (
        *parts.convolution("", 1, channels, KERNEL, KERNEL),
        *parts.repeat(parts.convolution("", channels, channels, KERNEL, KERNEL), 2),
        *parts.linear("", channels * pitches, width),
        *vit.blocks(width, c.whole("intermediate_size"), c.layers()),
        *parts.norm(width, "layer"),
    )


def qwen3_omni(c: Config) -> Weights:
    """The same and two layers (models/qwen3_omni_moe/modeling_qwen3_omni_moe.py)."""
    width = c.whole("hidden_size")
    return (
        *qwen3_asr(c),
        *parts.linear("", width, width, bias=True),
        *parts.linear("", width, c.whole("output_dim"), bias=True),
    )


def convolutions(c: Config, width: int) -> Weights:
    """Over frames, then with a stride of two."""
    return (
        *parts.convolution("", c.whole("num_mel_bins"), width, KERNEL),
        *parts.convolution("", width, width, KERNEL),
    )


def blocks(c: Config, width: int) -> Weights:
    """Blocks with layer norms, and biases on all but the keys."""
    one = (
        *parts.attention(width, 1, 1, width),
        Weight(w.BIAS, width, 1, 3),
        *parts.mlp(width, c.whole("intermediate_size"), gated=False, bias=True),
        *parts.norm(width, "layer", 2),
    )
    return parts.repeat(one, c.layers())


def keyless_attention(c: Config, width: int, query: int, kv: int) -> Weights:
    """Attention with biases on queries, values and output; heads may be wider than the model."""
    dim = c.whole("head_dim", max(1, width // query))
    return (
        *parts.attention(width, query, kv, dim, out_bias=True),
        Weight(w.BIAS, (query + kv) * dim),
    )
