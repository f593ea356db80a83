"""An encoder and a decoder of any two types, each in a section of the config.

``encoder-decoder`` pairs two texts (two BERTs), ``vision-encoder-decoder`` an image and a text
(Donut, TrOCR), ``speech-encoder-decoder`` sound and a text. Rules are those of transformers 5.24.0,
models/encoder_decoder/modeling_encoder_decoder.py and its two siblings.
"""

from __future__ import annotations

from collections.abc import Callable

from kvplan.core import weights as w
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import NO_OPTIONS, Description, Family, Options, Weights
from kvplan.readers.families.bert import Bert
from kvplan.readers.families.composite import described
from kvplan.readers.families.encoder_decoder import as_decoder, tower
from kvplan.readers.families.registry import family_of
from kvplan.readers.towers import deit, swin, wav2vec2

SOURCE_TOKENS: dict[str, Callable[[Config], int]] = {
    "deit": deit.deit_tokens,
    "donut-swin": swin.tokens,
    "swin": swin.tokens,
    "vit": deit.vit_tokens,
    "wav2vec2": wav2vec2.tokens,
}
STAGED = ("donut-swin", "swin")


class Pair(Family):
    """Each half as its own type describes it, and a projection where their widths differ."""

    def describe(self, c: Config, options: Options = NO_OPTIONS) -> Description:
        """The decoder over the encoder's output."""
        encoder, decoder = c.section("encoder"), as_decoder(c.section("decoder"))
        source = options.encoder_tokens
        if source is None:
            source = source_tokens(encoder)
        found = described(decoder, Options(encoder_tokens=source))
        bridge = parts.as_role(self.bridge(encoder, decoder), w.PROJECTOR)
        return found._replace(
            tensors=(*found.tensors, *parts.as_role(backbone(encoder), w.ENCODER), *bridge),
            encoder_tokens=source,
        )

    def bridge(self, encoder: Config, decoder: Config) -> Weights:
        """``enc_to_dec_proj``; a decoder that names the encoder's width reads it as it is."""
        wide, narrow = encoder_width(encoder), decoder.whole("hidden_size")
        if self.output_width(encoder) == narrow or decoder.has("cross_attention_hidden_size"):
            return ()
        return parts.linear("", wide, narrow, bias=True)

    def output_width(self, encoder: Config) -> int:
        """Width of what the encoder gives out."""
        return encoder_width(encoder)


class SoundPair(Pair):
    """An encoder's adapter may change its width."""

    def output_width(self, encoder: Config) -> int:
        """``output_hidden_size`` where there is one."""
        return encoder.whole("output_hidden_size", 0, least=0) or encoder_width(encoder)


def backbone(encoder: Config) -> Weights:
    """The encoder as ``AutoModel`` builds it: with the pooler of its class, without a head."""
    family = family_of(encoder.model_type)
    found: Weights = family.backbone(encoder) if isinstance(family, Bert) else tower(encoder)
    return found


def encoder_width(encoder: Config) -> int:
    """Width of the encoder's blocks, or of its last stage."""
    return swin.width(encoder) if encoder.model_type in STAGED else encoder.whole("hidden_size")


def source_tokens(encoder: Config) -> int:
    """The encoder's length where the asker gives none."""
    count = SOURCE_TOKENS.get(encoder.model_type)
    return encoder.whole("max_position_embeddings") if count is None else count(encoder)
