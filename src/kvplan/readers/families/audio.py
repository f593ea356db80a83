"""Audio-language models: an audio encoder, a projector and a text model.

Cited files are those of transformers 5.24.0.
"""

from __future__ import annotations

from kvplan.core import weights as w
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import NO_OPTIONS, Decoder, Description, Options, Weights
from kvplan.readers.families.composite import Composite, encoded
from kvplan.readers.towers import speech
from kvplan.readers.towers.blip import qformer


class AudioComposite(Composite):
    """One encoder in ``audio_config``; the head has its own matrix unless a family differs."""

    towers: tuple[str, ...] = ("audio_config",)

    def tied(self, c: Config, text: Config) -> bool:
        """Never: the class ties nothing."""
        return False


class TiedAudio(AudioComposite):
    """The enclosing config says whether the head is tied."""

    def tied(self, c: Config, text: Config) -> bool:
        """By the word of the enclosing config."""
        return c.flag("tie_word_embeddings")


class Qwen2Audio(AudioComposite):
    """One matrix with a bias (models/qwen2_audio, models/omniasr)."""

    text_type = "qwen2"

    def joint(self, c: Config, text: Config) -> Weights:
        """Qwen2AudioMultiModalProjector."""
        width = c.section("audio_config").whole("hidden_size")
        return parts.linear("", width, text.whole("hidden_size"), bias=True)


class AudioFlamingo(AudioComposite):
    """Two layers (models/audioflamingo3, models/musicflamingo)."""

    text_type = "qwen2"

    def joint(self, c: Config, text: Config) -> Weights:
        """AudioFlamingo3MultiModalProjector."""
        width, out = c.section("audio_config").whole("hidden_size"), text.whole("hidden_size")
        bias = c.flag("projector_bias")
        return (*parts.linear("", width, out, bias), *parts.linear("", out, out, bias))


class Voxtral(AudioComposite):
    """Several frames a token: as wide together as the encoder's network (models/voxtral)."""

    inherits = True

    def joint(self, c: Config, text: Config) -> Weights:
        """VoxtralMultiModalProjector."""
        width, out = c.section("audio_config").whole("intermediate_size"), text.whole("hidden_size")
        return (*parts.linear("", width, out), *parts.linear("", out, out))


class VoxtralRealtime(TiedAudio):
    """``downsample_factor`` frames a token (models/voxtral_realtime)."""

    inherits = True

    def joint(self, c: Config, text: Config) -> Weights:
        """VoxtralRealtimeMultiModalProjector."""
        width, out = c.section("audio_config").whole("hidden_size"), text.whole("hidden_size")
        joined = width * c.whole("downsample_factor")
        return (*parts.linear("", joined, out), *parts.linear("", out, out))


class GlmAsr(TiedAudio):
    """A wider layer between (models/glmasr)."""

    inherits = True

    def joint(self, c: Config, text: Config) -> Weights:
        """GlmAsrMultiModalProjector."""
        width, out = c.section("audio_config").whole("intermediate_size"), text.whole("hidden_size")
        return (
            *parts.linear("", width, 2 * out, bias=True),
            *parts.linear("", 2 * out, out, bias=True),
        )


class Qwen3Asr(TiedAudio):
    """Two layers, the second as wide as ``output_dim`` (models/qwen3_asr)."""

    def joint(self, c: Config, text: Config) -> Weights:
        """Qwen3ASRMultiModalProjector."""
        audio = c.section("audio_config")
        width = audio.whole("hidden_size")
        return (
            *parts.linear("", width, width, bias=True),
            *parts.linear("", width, audio.whole("output_dim"), bias=True),
        )


class MossTranscribe(TiedAudio):
    """``audio_merge_size`` frames a token, and a norm (models/moss_transcribe_diarize)."""

    def joint(self, c: Config, text: Config) -> Weights:
        """MossTranscribeDiarizeMultiModalProjector."""
        width, out = c.section("audio_config").whole("hidden_size"), text.whole("hidden_size")
        bias = c.flag("projector_bias")
        return (
            *parts.linear("", width * c.whole("audio_merge_size"), out, bias),
            *parts.linear("", out, out, bias),
            *parts.norm(out, "layer"),
        )


class FunAsr(TiedAudio):
    """Two layers and blocks like the encoder's, without memory (models/fun_asr_nano)."""

    def joint(self, c: Config, text: Config) -> Weights:
        """FunAsrNanoMultiModalProjector."""
        adaptor, width = c.section("adaptor_config"), c.section("audio_config").whole("hidden_size")
        inner, out = adaptor.whole("projector_hidden_size"), adaptor.whole("hidden_size")
        return (
            *parts.linear("", width, inner, bias=True),
            *parts.linear("", inner, out, bias=True),
            *parts.repeat(speech.fun_asr_block(adaptor, out), adaptor.layers()),
        )


class GraniteSpeech(TiedAudio):
    """Learned queries gather a window of frames (models/granite_speech)."""

    towers = ("encoder_config",)

    def joint(self, c: Config, text: Config) -> Weights:
        """GraniteSpeechEncoderProjector: the queries, their Q-Former and a projection."""
        reader = c.section("projector_config")
        width, source = reader.whole("hidden_size"), reader.whole("encoder_hidden_size")
        queries = c.whole("window_size") // c.whole("downsample_rate")
        return (
            *parts.scalar(width, queries),
            *qformer(reader, source, words=reader.flag("use_qformer_text_input")),
            *parts.linear("", width, text.whole("hidden_size"), bias=True),
        )


class NemoSpeech(AudioComposite):
    """An encoder, one matrix, and a second model for the times of words.

    models/nemotron3_5_transcribe/modeling_nemotron3_5_transcribe.py.
    """

    towers = ("audio_config", "word_timestamp_config")

    def joint(self, c: Config, text: Config) -> Weights:
        """Nemotron3_5TranscribeModel.multi_modal_projector."""
        width = c.section("audio_config").section("asr_config").whole("hidden_size")
        return parts.linear("", width, text.whole("hidden_size"), bias=True)


class VibeVoiceAsr(AudioComposite):
    """Two encoders of the waveform, each with two layers around a norm (models/vibevoice_asr)."""

    towers = ("acoustic_tokenizer_encoder_config", "semantic_tokenizer_encoder_config")

    def joint(self, c: Config, text: Config) -> Weights:
        """VibeVoiceAsrMultiModalProjector."""
        out = text.whole("hidden_size")
        found: Weights = ()
        for key in self.towers:
            found += parts.linear("", c.section(key).whole("hidden_size"), out, bias=True)
            found += (*parts.norm(out), *parts.linear("", out, out, bias=True))
        return found


class VibeVoice(VibeVoiceAsr):
    """Speech out: a codec, an encoder of meaning, a diffusion head (models/vibevoice)."""

    towers = ("audio_config", "semantic_model_config")

    def tied(self, c: Config, text: Config) -> bool:
        """By the word of the text model (VibeVoiceConfig.__post_init__)."""
        return text.flag("tie_word_embeddings")

    def joint(self, c: Config, text: Config) -> Weights:
        """The same between, the head, and the scale and shift of latents."""
        latent = c.section("audio_config").whole("hidden_size")
        head = c.section("diffusion_head_config")
        return (
            *super().joint(c, text),
            *parts.scalar(1, 2),
            *diffusion_head(head, text.whole("hidden_size"), latent),
        )


def diffusion_head(c: Config, width: int, latent: int) -> Weights:
    """models/vibevoice/modeling_vibevoice.py, VibeVoiceDiffusionHead.

    Its width is that of the text model and its latents are the codec's, whatever the section says.
    """
    one = (
        *parts.mlp(width, c.whole("intermediate_size"), bias=c.flag("mlp_bias")),
        *parts.norm(width),
        *parts.linear("", width, 3 * width),
    )
    return (
        *parts.linear("", latent, width),
        *parts.linear("", width, width, count=2),
        *parts.linear("", c.whole("frequency_embedding_size"), width),
        *parts.repeat(one, c.layers()),
        *parts.linear("", width, 2 * width),
        *parts.linear("", width, latent),
    )


class KyutaiSpeech(Decoder):
    """A decoder over text and codebooks in one embedding, beside the codec that makes those.

    models/kyutai_speech_to_text/modeling_kyutai_speech_to_text.py.
    """

    def describe(self, c: Config, options: Options = NO_OPTIONS) -> Description:
        """The decoder and the codec."""
        found = super().describe(c, options)
        codec = parts.as_role(encoded(c.section("codec_config")) or (), w.CODEC)
        return found._replace(tensors=found.tensors + codec)

    def inner(self, c: Config) -> int:
        """Half of ``ffn_dim``: gate and up are one matrix of it."""
        return c.whole("ffn_dim") // 2

    def embeddings(self, c: Config) -> Weights:
        """Text, every codebook, and one row for padding."""
        books = c.whole("num_codebooks") * c.whole("codebook_vocab_size")
        return parts.embedding(self.vocab(c) + books + 1, self.hidden(c))
