"""T5Gemma and T5Gemma 2: an encoder and a decoder of Gemma's blocks, windows in most layers.

Rules are those of transformers 5.24.0, models/t5gemma/modeling_t5gemma.py and
models/t5gemma2/modeling_t5gemma2.py. The cache over the encoder has no window.
"""

from __future__ import annotations

from kvplan.core import weights as w
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import (
    NO_OPTIONS,
    Description,
    Family,
    Heads,
    Options,
    Weights,
)
from kvplan.readers.families.encoder_decoder import full_attention, reading_encoder, tower
from kvplan.readers.families.windows import Periodic


class Side(Periodic):
    """An encoder: Gemma 2's blocks without a head."""

    norms = 4
    period = 2
    mlp_bias = False
    tied_default = True

    def head(self, c: Config) -> Weights:
        """None."""
        return ()


class ReadingSide(Periodic):
    """A decoder: the same, with an attention over the encoder and two norms around it."""

    norms = 6
    period = 2
    mlp_bias = False
    tied_default = True

    def describe(self, c: Config, options: Options = NO_OPTIONS) -> Description:
        """With a cache over the encoder in each block."""
        return reading_encoder(super().describe(c, options), c, self.heads(c), options)

    def attention_weights(self, c: Config, heads: Heads) -> Weights:
        """Its own attention and T5GemmaCrossAttention, which reads the encoder's width."""
        cross = full_attention(
            heads,
            self.hidden(c),
            bias=c.flag("attention_bias"),
            source_width=c.whole("cross_attention_hidden_size"),
        )
        return super().attention_weights(c, heads) + cross


class Side2(Side):
    """Gemma 3's: norms of queries and keys, five windows and a full layer, one more embedding.

    The extra row stands for the end of an image (T5Gemma2TextScaledWordEmbedding).
    """

    period = 6
    period_key = "sliding_window_pattern"
    qk_norm = "head"

    def embeddings(self, c: Config) -> Weights:
        """The table and the row."""
        return super().embeddings(c) + parts.scalar(self.hidden(c))


class MergedSide(Side2):
    """A decoder that reads its own tokens and the encoder's in one attention.

    The table is the encoder's where it is tied; T5Gemma2MergedAttention has one set of projections.
    """

    def describe(self, c: Config, options: Options = NO_OPTIONS) -> Description:
        """With a cache over the encoder in each block."""
        return reading_encoder(super().describe(c, options), c, self.heads(c), options)

    def embeddings(self, c: Config) -> Weights:
        """None of its own where it is tied."""
        return () if self.tied(c) else super().embeddings(c)

    def head(self, c: Config) -> Weights:
        """Tied to the same table."""
        return () if self.tied(c) else parts.linear(w.HEAD, self.hidden(c), self.vocab(c))


class T5Gemma(Family):
    """Two sections of one shape; the enclosing config says whether table and head are tied."""

    encoder_side: Side = Side()
    decoder_side: Periodic = ReadingSide()

    def describe(self, c: Config, options: Options = NO_OPTIONS) -> Description:
        """The decoder over the encoder's output."""
        encoder = self.encoder_text(c)
        source = options.encoder_tokens
        if source is None:
            source = encoder.whole("max_position_embeddings")
        decoder = c.section("decoder").with_values(
            add_cross_attention=True,
            cross_attention_hidden_size=encoder.whole("hidden_size"),
            tie_word_embeddings=c.flag("tie_word_embeddings", True),
        )
        found = self.decoder_side.describe(decoder, Options(encoder_tokens=source))
        extra = parts.as_role(self.encoder_side.describe(encoder).tensors, w.ENCODER)
        return found._replace(tensors=(*found.tensors, *extra, *self.image(c, encoder)))

    def encoder_text(self, c: Config) -> Config:
        """The section of the encoder's text model."""
        return c.section("encoder")

    def image(self, c: Config, encoder: Config) -> Weights:
        """What the encoder has for images: nothing."""
        return ()


class T5Gemma2(T5Gemma):
    """Images in the encoder, and one table for both sides."""

    encoder_side = Side2()
    decoder_side = MergedSide()

    def encoder_text(self, c: Config) -> Config:
        """One section deeper."""
        return c.section("encoder").section("text_config")

    def image(self, c: Config, encoder: Config) -> Weights:
        """The tower, and T5Gemma2MultiModalProjector: a norm and a projection."""
        vision = c.section("encoder").section("vision_config")
        width = vision.whole("hidden_size")
        joint = parts.norm(width) + parts.linear("", width, encoder.whole("hidden_size"))
        return parts.as_role(tower(vision), w.TOWER) + parts.as_role(joint, w.PROJECTOR)
