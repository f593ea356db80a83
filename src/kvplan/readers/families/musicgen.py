"""MusicGen and MusicGen Melody: T5 reads the prompt, a decoder writes codes, Encodec plays them.

Rules are those of transformers 5.24.0, models/musicgen/modeling_musicgen.py and
models/musicgen_melody/modeling_musicgen_melody.py.
"""

from __future__ import annotations

from kvplan.core import weights as w
from kvplan.core.errors import UnknownModelType
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.bart import Bart, Side
from kvplan.readers.families.base import NO_OPTIONS, Description, Family, Heads, Options, Weights
from kvplan.readers.families.composite import described
from kvplan.readers.families.encoder_decoder import decoder_alone, equal_heads, tower
from kvplan.readers.families.registry import family_of
from kvplan.readers.families.t5 import T5, TRAINED_TOKENS


class MusicgenDecoder(Bart):
    """models/musicgen/modeling_musicgen.py: a table and a head for each channel of codes."""

    depth_key = "num_hidden_layers"
    position_offset = None
    embedding_norm = False
    final_norm = True
    attention_bias = False
    network_bias = False

    def alone(self, c: Config) -> bool:
        """Always."""
        return True

    def tables(self, c: Config, alone: bool) -> Weights:
        """One row more than there are codes, in each channel."""
        table = parts.embedding(self.vocab(c) + 1, self.hidden(c))
        return parts.repeat(table, c.whole("num_codebooks"))

    def head(self, c: Config) -> Weights:
        """One a channel, never tied."""
        head = parts.linear(w.HEAD, self.hidden(c), self.vocab(c))
        return parts.repeat(head, c.whole("num_codebooks"))

    def side(self, c: Config, name: str) -> Side:
        """Its keys are those of a decoder-only model."""
        return Side(self.hidden(c), c.layers(), self.heads(c), c.whole("ffn_dim"))

    def heads(self, c: Config) -> Heads:
        """The decoder's heads."""
        return equal_heads(c, self.hidden(c), "num_attention_heads")


class MelodyDecoder(MusicgenDecoder):
    """No cross-attention: what conditions it stands before the codes, in the same cache.

    Its keys and values are as large as those of a cross-attention, and kept as long.
    """

    def cross_attention(self, c: Config, side: Side) -> Weights:
        """None."""
        return ()


class Musicgen(Family):
    """Three models and a projection; the decoder keeps the prompt's keys and values."""

    def describe(self, c: Config, options: Options = NO_OPTIONS) -> Description:
        """MusicgenForConditionalGeneration, or the decoder that its config holds."""
        decoder = c.section("decoder")
        if decoder_alone(c):
            return described(decoder, options)
        source = options.encoder_tokens
        if source is None:
            source = self.source_tokens(c)
        found = described(decoder, Options(encoder_tokens=source))
        text, sound = c.section("text_encoder"), c.section("audio_encoder")
        extra = (
            *parts.as_role(text_encoder(text), w.ENCODER),
            *parts.as_role(tower(sound), w.CODEC),
            *parts.as_role(self.bridges(c, text, decoder), w.PROJECTOR),
        )
        return found._replace(tensors=(*found.tensors, *extra))

    def source_tokens(self, c: Config) -> int:
        """The prompt's, of which T5 declares no most."""
        return TRAINED_TOKENS

    def bridges(self, c: Config, text: Config, decoder: Config) -> Weights:
        """``enc_to_dec_proj``, where the widths differ and the decoder does not name the text's."""
        wide, narrow = text.whole("hidden_size"), decoder.whole("hidden_size")
        if wide == narrow or decoder.has("cross_attention_hidden_size"):
            return ()
        return parts.linear("", wide, narrow, bias=True)


class MusicgenMelody(Musicgen):
    """A melody's chroma stands beside the prompt."""

    def source_tokens(self, c: Config) -> int:
        """Frames of the melody, and the prompt."""
        return c.whole("chroma_length") + super().source_tokens(c)

    def bridges(self, c: Config, text: Config, decoder: Config) -> Weights:
        """One projection for the prompt and one for the chroma."""
        wide, narrow = text.whole("hidden_size"), decoder.whole("hidden_size")
        notes = c.whole("num_chroma")
        return (
            *(parts.linear("", wide, narrow, bias=True) if wide != narrow else ()),
            *(parts.linear("", notes, narrow, bias=True) if notes != narrow else ()),
        )


def text_encoder(c: Config) -> Weights:
    """T5's encoder and its table (T5EncoderModel)."""
    family = family_of(c.model_type)
    if not isinstance(family, T5):
        raise UnknownModelType(f"The text encoder type {c.model_type!r} is not known.")
    return parts.embedding(family.vocab(c), family.hidden(c)) + family.encoder(c)
