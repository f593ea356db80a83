"""Encoder-decoders: a block of the decoder keeps its own tokens, and the encoder's once.

    source ──► encoder ──┐  keys and values over the source, computed once   CrossAttention
    tokens ──► decoder ──┴► keys and values of the tokens so far             FullAttention

The class that a config names decides the form: ``…ForCausalLM`` is the decoder alone, which keeps
an encoder's tokens only where the asker says how many there are.
"""

from __future__ import annotations

from kvplan.core import weights as w
from kvplan.core.cross import CrossAttention
from kvplan.core.errors import BadFile, UnknownModelType
from kvplan.core.layers import Layer
from kvplan.core.model import Block
from kvplan.core.stack import Stack
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import (
    NO_OPTIONS,
    Description,
    Family,
    Heads,
    Options,
    Weights,
    attention_cache,
)
from kvplan.readers.families.registry import tower_of

DECODER_ALONE = ("ForCausalLM", "Decoder")


class EncoderDecoder(Family):
    """An encoder, and a decoder whose every block attends to its own tokens and to the encoder's.

    ``source_length`` is the key of the longest input the encoder takes, ``depth_key`` that of the
    decoder's blocks.
    """

    source_length: str = "max_position_embeddings"
    depth_key: str = "decoder_layers"

    def describe(self, c: Config, options: Options = NO_OPTIONS) -> Description:
        """Tables, decoder, encoder and head of the class that the config names."""
        alone = self.alone(c)
        source = options.encoder_tokens
        if source is None and not alone:
            source = self.source_tokens(c)
        encoder = () if alone else parts.as_role(self.encoder(c), w.ENCODER)
        return Description(
            blocks=self.blocks(c, source),
            tensors=(*self.tables(c, alone), *self.decoder(c), *encoder, *self.head(c)),
            max_context_tokens=self.max_context(c),
            vocab_size=self.vocab(c),
            hidden_size=self.hidden(c),
            encoder_tokens=source,
        )

    def alone(self, c: Config) -> bool:
        """Whether the class that the config names has no encoder."""
        return decoder_alone(c)

    def blocks(self, c: Config, source: int | None) -> Stack[Block]:
        """What every decoder block keeps: the same in each unless a family says otherwise."""
        return Stack.uniform(caches(self.heads(c), source), self.decoder_depth(c))

    def tables(self, c: Config, alone: bool) -> Weights:
        """The embedding tables of tokens."""
        raise NotImplementedError

    def decoder(self, c: Config) -> Weights:
        """The decoder without tables and head."""
        raise NotImplementedError

    def encoder(self, c: Config) -> Weights:
        """The encoder without tables; its role is given by ``describe``."""
        raise NotImplementedError

    def head(self, c: Config) -> Weights:
        """The output projection unless it is tied to a table."""
        return () if self.tied(c) else parts.linear(w.HEAD, self.hidden(c), self.vocab(c))

    def heads(self, c: Config) -> Heads:
        """The shape of the decoder's attentions."""
        raise NotImplementedError

    def part(self, c: Config) -> Config:
        """The config of the decoder, where it is a section of its own."""
        return c

    def decoder_depth(self, c: Config) -> int:
        """Blocks of the decoder."""
        return self.part(c).layers(self.depth_key)

    def hidden(self, c: Config) -> int:
        """Width of the decoder."""
        return self.part(c).whole("hidden_size")

    def vocab(self, c: Config) -> int:
        """Rows of the output projection."""
        return self.part(c).whole("vocab_size")

    def tied(self, c: Config) -> bool:
        """Whether tables and head are one tensor."""
        return c.flag("tie_word_embeddings", True)

    def source_tokens(self, c: Config) -> int | None:
        """The encoder's length where the asker gives none: the longest it takes."""
        return c.whole(self.source_length)

    def max_context(self, c: Config) -> int | None:
        """The longest decoder sequence that the config declares."""
        return self.part(c).whole("max_position_embeddings")


def decoder_alone(c: Config) -> bool:
    """Whether the named class has no encoder; ``is_encoder_decoder`` says where none is named."""
    named = c.words("architectures", ())
    if named:
        return named[0].endswith(DECODER_ALONE)
    return not c.flag("is_encoder_decoder", True)


def as_decoder(c: Config, **values: object) -> Config:
    """A nested config as the decoder that an enclosing encoder-decoder builds of it."""
    return c.with_values(architectures=None, is_encoder_decoder=False, **values)


def caches(
    heads: Heads, source: int | None, window: int | None = None, over_source: Heads | None = None
) -> Block:
    """What a decoder block keeps: its own tokens and, where there is one, the encoder's output.

    ``over_source`` are the heads of the cross-attention where they differ from ``heads``.
    """
    own = attention_cache(heads, window)
    return (own,) if source is None else (own, cross_cache(over_source or heads, source))


def cross_cache(heads: Heads, source: int) -> Layer:
    """Keys and values over ``source`` tokens of the encoder."""
    return CrossAttention(
        kv_heads=heads.kv,
        key_dim=heads.key_dim,
        value_dim=heads.value_dim,
        encoder_tokens=source,
    )


def reading_encoder(found: Description, c: Config, heads: Heads, options: Options) -> Description:
    """A decoder's description with a cache over the encoder in each block.

    It is there where ``add_cross_attention`` is on and the asker says how long the encoder's
    output is.
    """
    source = options.encoder_tokens
    if source is None or not c.flag("add_cross_attention"):
        return found
    cross = cross_cache(heads, source)
    kinds = tuple([(*block, cross) for block in found.blocks.kinds])
    return found._replace(blocks=Stack(kinds, found.blocks.order), encoder_tokens=source)


def tower(section: Config) -> Weights:
    """The tensors of a nested encoder by its own type.

    Raises:
        UnknownModelType: its type is not known.
    """
    found = tower_of(section.model_type)
    if found is None:
        raise UnknownModelType(
            f"The type {section.model_type!r} (in {section.path}) is not known as an encoder."
        )
    weights: Weights = found(section)
    return weights


def equal_heads(c: Config, width: int, key: str) -> Heads:
    """As many KV heads as query heads, which share the model's width evenly.

    Raises:
        BadFile: the width is not a multiple of the heads, which every class of this kind refuses.
    """
    count = c.whole(key)
    if width % count:
        raise BadFile(f"The config's {key} is {count}, which does not divide its width {width:,}.")
    return Heads(count, count, width // count, width // count)


def full_attention(heads: Heads, width: int, *, bias: bool, source_width: int = 0) -> Weights:
    """The projections of an attention; keys and values read ``source_width`` features if given."""
    own = parts.attention(width, heads.query, heads.kv, heads.key_dim, bias=bias)
    if source_width in (0, width):
        return own
    wide = [
        part._replace(cols=source_width) if part.role in (w.KEY, w.VALUE) else part for part in own
    ]
    return tuple(wide)
