"""Speech to text with BART's blocks: Whisper, Speech2Text and SpeechT5.

The encoder's length is counted after its convolutions. Rules are those of transformers 5.24.0.
"""

from __future__ import annotations

from kvplan.core import weights as w
from kvplan.core.errors import BadFile
from kvplan.core.weights import Weight
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.bart import Bart, Side
from kvplan.readers.families.base import Weights
from kvplan.readers.families.encoder_decoder import full_attention
from kvplan.readers.towers import wav2vec2


class Whisper(Bart):
    """Thirty seconds of sound, always: ``max_source_positions`` frames after the convolutions."""

    position_offset = 0
    embedding_norm = False
    final_norm = True
    separate_tables = 1
    source_length = "max_source_positions"
    target_length = "max_target_positions"

    def attention(self, c: Config, side: Side) -> Weights:
        """models/whisper/modeling_whisper.py, WhisperAttention: no bias of keys."""
        found = full_attention(side.heads, side.width, bias=False)
        return (*found, Weight(w.BIAS, side.width, 1, 3))

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
        return (
            *wav2vec2.convolutions(c),
            *wav2vec2.projection(c, width),
            *wav2vec2.mask(c, width),
            *wav2vec2.positions(c, width),
            *parts.embedding(2 * c.whole("encoder_max_relative_position"), heads.key_dim),
            *super().encoder(c),
        )
