"""The byte latent transformer: bytes around patches.

    bytes ─ local encoder ─ patches ─ global transformer ─ local decoder ─ bytes

The local encoder and decoder keep keys and values of every byte, a window being a mask alone; the
global transformer runs over all patches anew (transformers 5.24.0, models/blt/modeling_blt.py,
BltModel.forward). A patcher, a small decoder that says where patches end, keeps nothing.
"""

from __future__ import annotations

from kvplan.core import weights as w
from kvplan.core.stack import Stack
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import (
    NO_OPTIONS,
    Decoder,
    Description,
    Family,
    Options,
    Weights,
)

HASHED_GROUPS = (3, 4, 5, 6, 7, 8)  # configuration_blt.py, BltConfig.__post_init__


class Part(Decoder):
    """The layers of any of the four parts: no biases, a network of 8/3 of the width by default."""

    attention_bias = False
    mlp_bias = False
    named_head_dim = False

    def inner(self, c: Config) -> int:
        """models/blt/configuration_blt.py, __post_init__ of each part."""
        return c.whole("intermediate_size", 8 * self.hidden(c) // 3)

    def stacked(self, c: Config) -> Weights:
        """All layers."""
        one = self.attention_weights(c, self.heads(c)) + self.network(c) + self.block_norms(c)
        return parts.repeat(one, self.depth(c))

    def crossing(self, c: Config) -> Weights:
        """Attention between bytes and patches, with norms as wide as the part (BltCrossAttention).

        In every layer, or in one where ``cross_attn_all_layers`` is off.
        """
        norms = parts.norm(self.hidden(c), count=2)
        count = self.depth(c) if c.flag("cross_attn_all_layers") else 1
        return parts.repeat(self.attention_weights(c, self.heads(c)) + norms, count)


PART = Part()


class Blt(Family):
    """Four parts, each with a config of its own."""

    def describe(self, c: Config, options: Options = NO_OPTIONS) -> Description:
        """The caches of the local parts, the tensors of all."""
        encoder = c.section("encoder_config", "blt_local_encoder")
        decoder = c.section("decoder_config", "blt_local_decoder")
        vocab, width = c.whole("vocab_size"), PART.hidden(decoder)
        kinds = (PART.attention(encoder).caches, PART.attention(decoder).caches)
        order = (0,) * PART.depth(encoder) + (1,) * PART.depth(decoder)
        return Description(
            blocks=Stack(kinds, order),
            tensors=(
                *self.encoder(c, encoder),
                *self.transformer(c, PART.hidden(encoder)),
                *self.decoder(decoder),
                *self.patcher(c),
                *parts.linear(w.HEAD, width, vocab),
            ),
            max_context_tokens=PART.max_context(decoder),
            vocab_size=vocab,
            hidden_size=width,
        )

    def encoder(self, c: Config, own: Config) -> Weights:
        """Bytes, hashes of groups of them, layers, and the way to patches.

        Where tied, it is the bytes that are read from the head, in the head's shape.
        """
        width = PART.hidden(own)
        tied = c.flag("tie_word_embeddings")
        groups = c.wholes("encoder_hash_byte_group_size", HASHED_GROUPS) or HASHED_GROUPS
        tables = len(groups) * c.whole("encoder_hash_byte_group_nb_functions")
        return (
            *(() if tied else parts.embedding(PART.vocab(own), width)),
            *parts.embedding(c.whole("encoder_hash_byte_group_vocab") * tables, width),
            *PART.stacked(own),
            *parts.linear(w.PROJECTOR, width, width * own.whole("cross_attn_k")),
            *PART.crossing(own),
        )

    def transformer(self, c: Config, encoder_width: int) -> Weights:
        """Layers over patches, behind a projection where the encoder's patches are not as wide."""
        own = c.section("global_config", "blt_global_transformer")
        width, patch = PART.hidden(own), encoder_width * c.whole("cross_attn_k")
        entry = parts.linear(w.PROJECTOR, patch, width) if patch != width else ()
        return entry + PART.stacked(own)

    def decoder(self, own: Config) -> Weights:
        """The way back from patches, layers and a norm."""
        width = PART.hidden(own)
        wide = width * own.whole("cross_attn_k")
        return (
            *parts.linear(w.PROJECTOR, own.whole("hidden_size_global"), wide),
            *PART.stacked(own),
            *PART.crossing(own),
            *parts.norm(width),
        )

    def patcher(self, c: Config) -> Weights:
        """A decoder of its own with a head that is not tied, where patches are made here."""
        if not c.flag("patch_in_forward"):
            return ()
        own = c.section("patcher_config", "blt_patcher")
        width, vocab = PART.hidden(own), PART.vocab(own)
        return (
            *parts.embedding(vocab, width),
            *PART.stacked(own),
            *parts.norm(width),
            *parts.linear(w.HEAD, width, vocab),
        )
