"""BART and its kin: learned or computed positions, layer norms, biases nearly everywhere.

Every class of transformers 5.24.0 named here is the same encoder and decoder, with the norms and
positions in other places; what differs is declared. A computed table of positions is a parameter
where the class keeps it in ``nn.Embedding`` (Pegasus, Marian) and none where it is a buffer (M2M).
"""

from __future__ import annotations

from typing import NamedTuple

from kvplan.core import weights as w
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Heads, Weights
from kvplan.readers.families.encoder_decoder import (
    EncoderDecoder,
    decoder_alone,
    equal_heads,
    full_attention,
)


class Side(NamedTuple):
    """The shape of an encoder or of a decoder."""

    width: int
    depth: int
    heads: Heads
    inner: int


class Bart(EncoderDecoder):
    """Positions learned with two spare rows, a norm after the embeddings.

    ``position_offset`` is the number of spare rows, None where positions are no parameters.
    ``separate_tables`` are the token tables of an untied model.
    """

    position_offset: int | None = 2
    embedding_norm: bool = True
    final_norm: bool = False
    attention_bias: str | bool = True
    network_bias: bool = True
    separate_tables: int = 3
    separate_tables_alone: int = 1
    target_length: str = "max_position_embeddings"

    def tables(self, c: Config, alone: bool) -> Weights:
        """One table if tied, else the shared one beside the encoder's and the decoder's."""
        table = parts.embedding(self.vocab(c), self.hidden(c))
        if self.tied(c):
            return table
        return parts.repeat(table, self.separate_tables_alone if alone else self.separate_tables)

    def encoder(self, c: Config) -> Weights:
        """models/bart/modeling_bart.py, BartEncoder."""
        side = self.side(c, "encoder")
        return (
            *self.frame(c, self.source_length),
            *parts.repeat(self.attention(c, side), side.depth),
            *parts.norm(side.width, "layer", 2 * side.depth),
            *self.networks(c, side, "encoder"),
        )

    def decoder(self, c: Config) -> Weights:
        """models/bart/modeling_bart.py, BartDecoder: the cross-attention is always built."""
        side = self.side(c, "decoder")
        return (
            *self.frame(c, self.target_length),
            *parts.repeat(self.attention(c, side) + self.cross_attention(c, side), side.depth),
            *parts.norm(side.width, "layer", 2 * side.depth),
            *self.networks(c, side, "decoder"),
        )

    def frame(self, c: Config, length: str) -> Weights:
        """Positions, and the norms before the first block and after the last."""
        norms = self.embedding_norm + self.final_norm
        found = parts.norm(self.hidden(c), "layer", norms) if norms else ()
        return self.positions(c, length) + found

    def positions(self, c: Config, length: str) -> Weights:
        """The table of positions."""
        if self.position_offset is None:
            return ()
        rows = c.whole(length) + self.position_offset
        return parts.embedding(rows, self.hidden(c), w.POSITION)

    def attention(self, c: Config, side: Side) -> Weights:
        """One attention of the model's width."""
        bias = self.attention_bias
        biased = bias if isinstance(bias, bool) else c.flag(bias)
        return full_attention(side.heads, side.width, bias=biased)

    def cross_attention(self, c: Config, side: Side) -> Weights:
        """The attention over the encoder's tokens, and its norm."""
        return self.attention(c, side) + parts.norm(side.width, "layer")

    def networks(self, c: Config, side: Side, name: str) -> Weights:
        """The feed-forward networks of all blocks of one side."""
        return parts.repeat(self.network(side), side.depth)

    def network(self, side: Side) -> Weights:
        """Two projections."""
        return parts.mlp(side.width, side.inner, gated=False, bias=self.network_bias)

    def side(self, c: Config, name: str) -> Side:
        """The shape of the ``encoder`` or the ``decoder``."""
        width = self.hidden(c)
        heads = equal_heads(c, width, f"{name}_attention_heads")
        return Side(width, c.layers(f"{name}_layers"), heads, c.whole(f"{name}_ffn_dim"))

    def heads(self, c: Config) -> Heads:
        """The decoder's heads."""
        return equal_heads(c, self.hidden(c), "decoder_attention_heads")

    def max_context(self, c: Config) -> int | None:
        """The decoder's positions."""
        return c.whole(self.target_length)


class MBart(Bart):
    """One more norm after the last block."""

    final_norm = True


class Mvp(Bart):
    """BART with prompts for both attentions of the decoder, where switched on."""

    def tables(self, c: Config, alone: bool) -> Weights:
        """models/mvp/modeling_mvp.py: MvpForCausalLM has no prompts.

        Nor has the encoder: MvpModel passes the switch in the place of another argument.
        """
        found = super().tables(c, alone)
        if alone or not c.flag("use_prompt"):
            return found
        return found + parts.repeat(self.prompt(c), 2)

    def prompt(self, c: Config) -> Weights:
        """MvpPrompt: an embedding, and two projections to keys and values of all layers."""
        width, middle = self.hidden(c), c.whole("prompt_mid_dim")
        return (
            *parts.embedding(c.whole("prompt_length"), width),
            *parts.linear(w.PROJECTOR, width, middle, bias=True),
            *parts.linear(w.PROJECTOR, middle, 2 * self.decoder_depth(c) * width, bias=True),
        )


class Pegasus(Bart):
    """Fixed positions without spare rows, a norm after the last block alone."""

    position_offset: int | None = 0
    embedding_norm = False
    final_norm = True


class Blenderbot(Pegasus):
    """Laid out as Pegasus; its positions are learned."""


class BlenderbotSmall(Bart):
    """BART without spare rows of positions."""

    position_offset = 0


class Marian(Bart):
    """Fixed positions, no norm outside the blocks, and a vocabulary of its own for each side."""

    position_offset = 0
    embedding_norm = False

    def tables(self, c: Config, alone: bool) -> Weights:
        """models/marian/modeling_marian.py, MarianModel: separate tables are never tied."""
        width, target = self.hidden(c), self.target_vocab(c)
        source = self.source_vocab(c)
        if alone:
            return parts.embedding(target, width)
        if not c.flag("share_encoder_decoder_embeddings", True):
            return parts.embedding(source, width) + parts.embedding(target, width)
        if self.tied(c):
            return parts.embedding(source, width)
        return parts.repeat(parts.embedding(source, width), 2) + parts.embedding(target, width)

    def source_vocab(self, c: Config) -> int:
        """Rows of the encoder's table."""
        return c.whole("vocab_size")

    def target_vocab(self, c: Config) -> int:
        """Rows of the decoder's table; 0 is none (configuration_marian.py, __post_init__)."""
        return c.whole("decoder_vocab_size", 0, least=0) or c.whole("vocab_size")

    def vocab(self, c: Config) -> int:
        """Rows of the head: the shared vocabulary, else the decoder's."""
        if c.flag("share_encoder_decoder_embeddings", True):
            return c.whole("vocab_size")
        return self.target_vocab(c)


class BigBirdPegasus(Bart):
    """Biases of attention by a key; the encoder's blocks of attention need no parameters."""

    position_offset = 0
    attention_bias = "use_bias"

    def tied(self, c: Config) -> bool:
        """BigBirdPegasusForCausalLM names no tensors to tie."""
        return not decoder_alone(c) and super().tied(c)


class PegasusX(Pegasus):
    """No biases in attention, computed positions, global tokens beside the encoder's."""

    position_offset = None
    attention_bias = False

    def encoder(self, c: Config) -> Weights:
        """models/pegasus_x/modeling_pegasus_x.py: a norm for the global tokens in each layer."""
        width, depth = self.hidden(c), c.layers("encoder_layers")
        return (
            *super().encoder(c),
            *parts.embedding(c.whole("num_global_tokens"), width),
            *parts.norm(width, "layer", depth),
        )


class M2M100(Pegasus):
    """Positions in a buffer."""

    position_offset = None


class NllbMoe(M2M100):
    """Every few layers a mixture of experts of which a token passes two."""

    def networks(self, c: Config, side: Side, name: str) -> Weights:
        """Layers whose number is a multiple of the step are sparse (NllbMoeEncoder)."""
        step = c.whole(f"{name}_sparse_step", least=0)
        sparse = side.depth // step if step else 0
        experts = parts.experts(
            side.width,
            side.inner,
            c.whole("num_experts"),
            2,
            gated=False,
            bias=True,
            router_bias=c.flag("router_bias"),
        )
        dense = parts.repeat(self.network(side), side.depth - sparse)
        return dense + parts.repeat(experts, sparse)


class Led(Bart):
    """Windows with global tokens in the encoder: a second set of query, key and value."""

    position_offset = 0
    source_length = "max_encoder_position_embeddings"
    target_length = "max_decoder_position_embeddings"

    def encoder(self, c: Config) -> Weights:
        """models/led/modeling_led.py, LEDEncoderSelfAttention."""
        width, depth = self.hidden(c), c.layers("encoder_layers")
        second = parts.repeat(parts.linear("", width, width, bias=True), 3 * depth)
        return super().encoder(c) + second


class Fsmt(Bart):
    """Two vocabularies; the positions up to that of padding come first."""

    embedding_norm = False

    def tables(self, c: Config, alone: bool) -> Weights:
        """models/fsmt/modeling_fsmt.py: one table if tied, whichever side it is of."""
        width, target = self.hidden(c), self.vocab(c)
        if self.tied(c):
            return parts.embedding(target, width)
        return parts.embedding(c.whole("src_vocab_size"), width) + parts.embedding(target, width)

    def positions(self, c: Config, length: str) -> Weights:
        """``padding_idx + 1`` spare rows (FSMTEncoder); the class's padding index is 1."""
        rows = c.whole(length) + c.whole("pad_token_id", 1, least=0) + 1
        return parts.embedding(rows, self.hidden(c), w.POSITION)


class ProphetNet(Bart):
    """Several future tokens at once: relative positions in each layer, a table of streams."""

    depth_key = "num_decoder_layers"
    position_offset = 0
    separate_tables_alone = 2

    def decoder(self, c: Config) -> Weights:
        """models/prophetnet/modeling_prophetnet.py, ProphetNetDecoder."""
        side = self.side(c, "decoder")
        relative = c.whole("num_buckets") * side.heads.query
        return (
            *super().decoder(c),
            *parts.embedding(c.whole("ngram"), side.width, w.POSITION),
            *parts.repeat(parts.linear(w.POSITION, side.width, relative, bias=True), side.depth),
        )

    def cross_attention(self, c: Config, side: Side) -> Weights:
        """Built where ``add_cross_attention`` is on."""
        return super().cross_attention(c, side) if c.flag("add_cross_attention", True) else ()

    def side(self, c: Config, name: str) -> Side:
        """Its keys have other names."""
        width = self.hidden(c)
        heads = equal_heads(c, width, f"num_{name}_attention_heads")
        return Side(width, c.layers(f"num_{name}_layers"), heads, c.whole(f"{name}_ffn_dim"))

    def heads(self, c: Config) -> Heads:
        """The decoder's heads."""
        return equal_heads(c, self.hidden(c), "num_decoder_attention_heads")
