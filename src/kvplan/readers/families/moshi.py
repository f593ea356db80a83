"""Moshi: a text decoder, and a depth decoder over the codebooks of one frame.

models/moshi/configuration_moshi.py and modeling_moshi.py of transformers 5.24.0.
"""

from __future__ import annotations

from kvplan.core import weights as w
from kvplan.core.errors import UnknownModelType
from kvplan.core.weights import Weight
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import NO_OPTIONS, Decoder, Description, Options, Weights
from kvplan.readers.families.registry import tower_of


class Moshi(Decoder):
    """A window in every layer; gate and up share ``ffn_dim``; one more row in the embedding."""

    attention_bias = False

    def network(self, c: Config) -> Weights:
        """Gate and up side by side in ``ffn_dim``, half of it down (MoshiGatingMLP)."""
        hidden, wide = self.hidden(c), c.whole("ffn_dim")
        return (Weight(w.MLP_IN, wide, hidden), Weight(w.MLP_OUT, hidden, wide // 2))

    def embeddings(self, c: Config) -> Weights:
        """The vocabulary and a padding row."""
        return parts.embedding(self.vocab(c) + 1, self.hidden(c))

    def tied(self, c: Config) -> bool:
        """Never: the class ties no weights."""
        return False

    def describe(self, c: Config, options: Options = NO_OPTIONS) -> Description:
        """The decoder alone where the file names it, else all that speech takes.

        The cache is the decoder's: the depth decoder's lives for one frame.
        """
        found = super().describe(c, options)
        if "MoshiForCausalLM" in c.words("architectures", ()):
            return found
        speech = self.sound_embeddings(c) + self.depth_decoder(c) + self.codec(c)
        return found._replace(tensors=found.tensors + speech)

    def codec(self, c: Config) -> Weights:
        """The audio tokenizer."""
        section = c.section("audio_encoder_config")
        tower = tower_of(section.model_type)
        if tower is None:
            raise UnknownModelType(f"The codec type {section.model_type!r} is not known.")
        return parts.as_role(tower(section), w.CODEC)

    def sound_words(self, c: Config) -> int:
        """Entries of a codebook: the codec's unless the config says otherwise."""
        if c.has("audio_vocab_size"):
            return c.whole("audio_vocab_size")
        return c.section("audio_encoder_config").whole("codebook_size", 2048)

    def sound_embeddings(self, c: Config) -> Weights:
        """One table for each codebook of the speaker and of the listener."""
        tables = 2 * c.whole("num_codebooks")
        return (Weight(w.EMBEDDING, self.sound_words(c) + 1, self.hidden(c), tables),)

    def depth_section(self, c: Config) -> Config:
        """The depth decoder's config; one that a file gives takes four values from the outer."""
        depth = c.section("depth_decoder_config")
        if not c.in_file("depth_decoder_config"):
            return depth
        return depth.with_values(
            audio_vocab_size=self.sound_words(c),
            input_size=self.hidden(c),
            vocab_size=self.vocab(c),
            num_codebooks=c.whole("num_codebooks"),
        )

    def depth_decoder(self, c: Config) -> Weights:
        """Matrices of its own for each codebook (MoshiDepthDecoder, MoshiFlexibleLinear)."""
        depth = self.depth_section(c)
        hidden, books = depth.whole("hidden_size"), depth.whole("num_codebooks")
        words, heads = depth.whole("audio_vocab_size"), self.heads(depth)
        attention = self.attention_weights(depth, heads)
        layer = parts.repeat(attention + self.network(depth), books) + parts.norm(hidden, count=2)
        return (
            Weight(w.EMBEDDING, depth.whole("vocab_size") + 1, hidden),
            *parts.repeat(parts.embedding(words + 1, hidden), books - 1),
            Weight(w.PROJECTOR, hidden, depth.whole("input_size"), books),
            *parts.repeat(layer, depth.layers()),
            Weight(w.HEAD, words, hidden, books),
        )
