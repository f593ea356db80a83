"""Speech encoders that are neither Whisper's nor conformers.

The rules are those of transformers 5.24.0, in the file that each function names.
"""

from __future__ import annotations

from kvplan.core import weights as w
from kvplan.core.errors import BadFile
from kvplan.core.weights import Weight
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Weights
from kvplan.readers.towers import vit


def omni_asr(c: Config) -> Weights:
    """wav2vec 2 with layer norms (models/omniasr/modeling_omniasr.py, OmniASRAudioModel)."""
    width = c.whole("hidden_size")
    groups = c.whole("num_conv_pos_embedding_groups")
    return (
        *_waveform(c, width),
        *parts.convolution("", width, width, c.whole("num_conv_pos_embeddings"), groups=groups),
        *vit.encoder(c),
    )


def _waveform(c: Config, width: int) -> Weights:
    """Convolutions with a norm each, then a norm and a projection."""
    outs, kernels = c.wholes("conv_dim", least=1), c.wholes("conv_kernel", least=1)
    if not outs or len(outs) != len(kernels):
        raise BadFile("The config's audio_config.conv_dim and conv_kernel differ in length.")
    found: Weights = ()
    for into, out, kernel in zip((1, *outs), outs, kernels, strict=False):
        found += parts.convolution("", into, out, kernel, bias=c.flag("conv_bias"))
        found += parts.norm(out, "layer")
    ending = parts.linear("", outs[-1], width, bias=True)
    return (*found, *parts.norm(outs[-1], "layer"), *ending)


def fun_asr(c: Config) -> Weights:
    """Attention beside a memory of near frames; the first layer reads stacked frames.

    models/fun_asr_nano/modeling_fun_asr_nano.py, FunAsrNanoEncoder: the last layer of either part
    ends in a norm.
    """
    width, depth = c.whole("hidden_size"), max(1, c.layers())
    stacked = c.whole("num_mel_bins") * c.whole("num_stacked_frames")
    ends = {depth - 1, depth - c.whole("num_timestamp_prediction_layers", least=0) - 1}
    memory = parts.convolution(
        w.STATE, width, width, c.whole("fsmn_kernel_size"), bias=False, groups=width
    )
    return (
        *fun_asr_block(c, stacked),
        *parts.repeat(fun_asr_block(c, width), depth - 1),
        *parts.repeat(memory, depth),
        *parts.norm(width, "layer", sum(place >= 0 for place in ends)),
    )


def fun_asr_block(c: Config, into: int) -> Weights:
    """A block without memory that reads vectors of ``into`` elements."""
    width = c.whole("hidden_size")
    return (
        *parts.attention(into, 1, 1, width, bias=True, out=width),
        *parts.mlp(width, c.whole("intermediate_size"), gated=False, bias=True),
        *parts.norm(into, "layer"),
        *parts.norm(width, "layer"),
    )


def nemotron_blocks(c: Config, *, qk_norm: bool = True) -> Weights:
    """A norm, the blocks, a norm; values have as many heads as queries."""
    width, query = c.whole("hidden_size"), c.whole("num_attention_heads")
    kv = c.whole("num_key_value_heads", query)
    dim = c.whole("head_dim", max(1, width // query))
    one = (
        Weight(w.QUERY, query * dim, width),
        Weight(w.KEY, kv * dim, width),
        Weight(w.VALUE, query * dim, width),
        *parts.linear(w.OUTPUT, query * dim, width, bias=True),
        *(parts.norm(dim, "layer", 2) if qk_norm else ()),
        *parts.mlp(width, c.whole("intermediate_size"), gated=False, bias=True),
        *parts.norm(width, "layer", 2),
    )
    return (*parts.norm(width, "layer", 2), *parts.repeat(one, c.layers()))


def nemotron_diarization(c: Config) -> Weights:
    """Who speaks when: an encoder without those norms, upsampling and a classifier.

    models/nemotron3_diarization/modeling_nemotron3_diarization.py.
    """
    audio, head = c.section("audio_config"), c.section("head_config")
    width, frames = head.whole("hidden_size"), head.whole("subsampling_factor")
    into = audio.whole("hidden_size")
    return (
        *_stacked_frames(audio),
        *nemotron_blocks(audio, qk_norm=False),
        *parts.scalar(into),
        *parts.linear("", head.whole("audio_hidden_size"), width, bias=True),
        *parts.convolution("", width, width * frames, 3),
        *parts.linear("", width, width, bias=True),
        *parts.linear("", width, head.whole("num_speakers"), bias=True),
    )


def nemotron_transcribe(c: Config) -> Weights:
    """An encoder of speech, one of speakers, and a norm for what either says.

    models/nemotron3_5_transcribe/modeling_nemotron3_5_transcribe.py.
    """
    speech, speakers = c.section("asr_config"), c.section("diarization_config")
    return (
        *_stacked_frames(speech),
        *nemotron_blocks(speech),
        *nemotron_diarization(speakers),
        *parts.norm(speech.whole("hidden_size"), "layer"),
        *parts.norm(speakers.section("head_config").whole("num_speakers"), "layer"),
    )


def nemotron_timestamps(c: Config) -> Weights:
    """Upsampled frames, blocks and a head over the words (the same file)."""
    width = c.whole("hidden_size")
    return (
        *parts.convolution("", width, width, c.whole("upsampling_factor")),
        *nemotron_blocks(c),
        *parts.convolution("", width, c.whole("vocab_size"), 1),
    )


def _stacked_frames(c: Config) -> Weights:
    frame = c.whole("subsampling_factor") * c.whole("num_mel_bins")
    return parts.linear("", frame, c.whole("hidden_size"))
