"""Images in and text out through a cross-attention: Florence-2, Pix2Struct and PP-FormulaNet.

Rules are those of transformers 5.24.0, in the file that each class names.
"""

from __future__ import annotations

from kvplan.core import weights as w
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import NO_OPTIONS, Description, Heads, Options, Weights
from kvplan.readers.families.composite import Composite
from kvplan.readers.families.encoder_decoder import EncoderDecoder
from kvplan.readers.towers import formula


class Florence2(Composite):
    """BART behind an image encoder; the encoder's tokens are those of the image and the prompt."""

    text_type = "bart"

    def describe(self, c: Config, options: Options = NO_OPTIONS) -> Description:
        """models/florence2/modeling_florence2.py: the head is the enclosing model's.

        Whether it is tied is the enclosing config's to say; the tables are BART's.
        """
        found = super().describe(c, options)
        text = self.text_part(c)
        tensors = tuple([weight for weight in found.tensors if weight.role != w.HEAD])
        if not c.flag("tie_word_embeddings", True):
            tensors += parts.linear(w.HEAD, text.whole("hidden_size"), text.whole("vocab_size"))
        return found._replace(tensors=tensors)

    def text_section(self, c: Config) -> Config:
        """BART's config as it stands."""
        return self.text_part(c)

    def joint(self, c: Config, text: Config) -> Weights:
        """Florence2MultiModalProjector: learned rows and columns, a projection and a norm."""
        vision = c.section("vision_config")
        width, out = vision.wholes("embed_dim", least=1)[-1], vision.whole("projection_dim")
        return (
            *parts.embedding(vision.whole("max_position_embeddings"), width),
            *parts.linear("", width, out),
            *parts.norm(out, "layer"),
        )


class Pix2Struct(EncoderDecoder):
    """Patches of any page behind their rows and columns, and T5's decoder.

    models/pix2struct/modeling_pix2struct.py.
    """

    depth_key = "num_layers"

    def tables(self, c: Config, alone: bool) -> Weights:
        """The decoder's."""
        return parts.embedding(self.vocab(c), self.hidden(c))

    def encoder(self, c: Config) -> Weights:
        """Pix2StructVisionModel."""
        part = c.section("vision_config")
        width, depth, heads = part.whole("hidden_size"), part.layers(), part.whole("d_kv")
        places = parts.embedding(part.whole("seq_len"), width)
        query = part.whole("num_attention_heads")
        one = (
            *parts.attention(width, query, query, heads),
            *parts.mlp(width, part.whole("d_ff")),
            *parts.norm(width, count=2),
        )
        return (
            *parts.linear("", part.whole("patch_embed_hidden_size"), width, bias=True),
            *parts.repeat(places, 2),
            *parts.repeat(one, depth),
            *parts.norm(width),
        )

    def decoder(self, c: Config) -> Weights:
        """Pix2StructTextModel: projections as wide as the model, relative positions once."""
        part, width, depth = self.part(c), self.hidden(c), self.decoder_depth(c)
        buckets = part.whole("relative_attention_num_buckets")
        relative = parts.embedding(buckets, self.heads(c).query, w.POSITION)
        return (
            *parts.repeat(parts.attention(width, 1, 1, width), 2 * depth),
            *parts.repeat(relative, min(depth, 1)),
            *parts.repeat(parts.mlp(width, part.whole("d_ff")), depth),
            *parts.norm(width, count=3 * depth + 1),
        )

    def part(self, c: Config) -> Config:
        """The decoder's section."""
        return c.section("text_config")

    def heads(self, c: Config) -> Heads:
        """The decoder's heads."""
        count, dim = self.part(c).whole("num_heads"), self.part(c).whole("d_kv")
        return Heads(count, count, dim, dim)

    def tied(self, c: Config) -> bool:
        """The enclosing config's word (configuration_pix2struct.py, __post_init__)."""
        return c.flag("tie_word_embeddings")

    def source_tokens(self, c: Config) -> int | None:
        """The most patches there are."""
        return c.section("vision_config").whole("seq_len")

    def max_context(self, c: Config) -> int | None:
        """Positions are relative: none is declared."""
        return None


class PPFormulaNet(Composite):
    """MBart's decoder over an image of a fixed size."""

    text_type = "pp_formulanet_text"

    def describe(self, c: Config, options: Options = NO_OPTIONS) -> Description:
        """models/pp_formulanet/modeling_pp_formulanet.py."""
        source = options.encoder_tokens
        if source is None:
            source = formula.tokens(c.section("vision_config"))
        return super().describe(c, Options(encoder_tokens=source))
