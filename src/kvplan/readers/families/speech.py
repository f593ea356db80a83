"""Speech to text with BART's blocks: Whisper, Speech2Text and SpeechT5.

The encoder's length is counted after its convolutions. Rules are those of transformers 5.24.0.
"""

from __future__ import annotations

from kvplan.core import weights as w
from kvplan.core.errors import BadFile
from kvplan.core.weights import Weight
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.bart import Bart
from kvplan.readers.families.base import Heads, Weights
from kvplan.readers.families.encoder_decoder import full_attention


class Whisper(Bart):
    """Thirty seconds of sound, always: ``max_source_positions`` frames after the convolutions."""

    position_offset = 0
    embedding_norm = False
    final_norm = True
    separate_tables = 1
    source_length = "max_source_positions"
    target_length = "max_target_positions"

    def attention(self, c: Config, heads: Heads) -> Weights:
        """models/whisper/modeling_whisper.py, WhisperAttention: no bias of keys."""
        width = self.hidden(c)
        return (*full_attention(heads, width, bias=False), Weight(w.BIAS, width, 1, 3))

    def encoder(self, c: Config) -> Weights:
        """WhisperEncoder: two convolutions over the spectrogram, the second of stride two."""
        width = self.hidden(c)
        return (
            *parts.convolution("", c.whole("num_mel_bins"), width, 3),
            *parts.convolution("", width, width, 3),
            *super().encoder(c),
        )


class Speech2Text(Bart):
    """Computed positions; every convolution halves the frames."""

    position_offset = None
    embedding_norm = False
    final_norm = True
    separate_tables = 1
    source_length = "max_source_positions"
    target_length = "max_target_positions"

    def encoder(self, c: Config) -> Weights:
        """models/speech_to_text/modeling_speech_to_text.py, Conv1dSubsampler: gated outputs."""
        kernels, middle = self.kernels(c), c.whole("conv_channels")
        into = c.whole("input_feat_per_channel") * c.whole("input_channels")
        found: Weights = ()
        for place, kernel in enumerate(kernels, 1):
            out = middle if place < len(kernels) else 2 * self.hidden(c)
            found += parts.convolution("", into, out, kernel)
            into = middle // 2
        return found + super().encoder(c)

    def source_tokens(self, c: Config) -> int | None:
        """Frames after the convolutions (_get_feat_extract_output_lengths)."""
        frames = c.whole(self.source_length)
        for _ in self.kernels(c):
            frames = (frames - 1) // 2 + 1
        return frames

    @staticmethod
    def kernels(c: Config) -> list[int]:
        """The widths of the convolutions.

        Raises:
            BadFile: not as many as ``num_conv_layers`` (configuration_speech_to_text.py).
        """
        kernels, count = c.wholes("conv_kernel_sizes", least=1), c.whole("num_conv_layers")
        if len(kernels) != count:
            raise BadFile(
                f"The config's conv_kernel_sizes has {len(kernels)} widths and "
                f"num_conv_layers is {count}."
            )
        return kernels


class SpeechT5(Bart):
    """Sound in and text out: SpeechT5ForSpeechToText, the class that decodes tokens."""

    separate_tables = 1
    source_length = "max_speech_positions"
    target_length = "max_text_positions"

    def frame(self, c: Config, length: str) -> Weights:
        """One norm, in the encoder; positions are computed."""
        return parts.norm(self.hidden(c), "layer") if length == self.source_length else ()

    def encoder(self, c: Config) -> Weights:
        """models/speecht5/modeling_speecht5.py, SpeechT5EncoderWithSpeechPrenet."""
        width, heads = self.hidden(c), self.side(c, "encoder").heads
        masked = c.number("mask_time_prob", 0) > 0 or c.number("mask_feature_prob", 0) > 0
        return (
            *waveform_convolutions(c),
            *waveform_projection(c, width),
            *(parts.scalar(width) if masked else ()),
            *convolved_positions(c, width),
            *parts.embedding(2 * c.whole("encoder_max_relative_position"), heads.key_dim),
            *super().encoder(c),
        )


def waveform_convolutions(c: Config) -> Weights:
    """Wav2vec 2's convolutions: a norm after each of them, or after the first alone.

    models/wav2vec2/modeling_wav2vec2.py, Wav2Vec2FeatureEncoder.

    Raises:
        BadFile: lists of different lengths, or a kind of norm that the class does not know.
    """
    outs, kernels = c.wholes("conv_dim", least=1), c.wholes("conv_kernel", least=1)
    if not outs or len(outs) != len(kernels):
        raise BadFile("The config's conv_dim and conv_kernel are empty or differ in length.")
    kind = c.text("feat_extract_norm")
    if kind not in ("group", "layer"):
        raise BadFile(f"The config's feat_extract_norm is {kind[:40]!r}, not 'group' or 'layer'.")
    found: Weights = ()
    for into, out, kernel in zip((1, *outs), outs, kernels, strict=False):
        found += parts.convolution("", into, out, kernel, bias=c.flag("conv_bias"))
    normed = outs[:1] if kind == "group" else outs
    return found + tuple([Weight(w.NORM, out, 1, 2) for out in normed])


def waveform_projection(c: Config, width: int) -> Weights:
    """A norm, and a projection to the model's width."""
    last = c.wholes("conv_dim", least=1)[-1]
    return parts.norm(last, "layer") + parts.linear("", last, width, bias=True)


def convolved_positions(c: Config, width: int) -> Weights:
    """A grouped convolution under weight norm: a length for each place of its kernel beside it."""
    kernel, groups = c.whole("num_conv_pos_embeddings"), c.whole("num_conv_pos_embedding_groups")
    return parts.convolution("", width, width, kernel, groups=groups) + parts.scalar(kernel)
