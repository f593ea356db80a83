"""Qwen4-Exp: gated delta nets, attention with an indexer, and embeddings of n-grams in some blocks.

models/qwen4_exp/configuration_qwen4_exp.py and modeling_qwen4_exp.py (transformers 5.24.0).
"""

from __future__ import annotations

from kvplan.core import weights as w
from kvplan.core.errors import BadFile
from kvplan.core.layers import INT64_BYTES, Layer
from kvplan.core.positions import PositionedAttention
from kvplan.core.states import LinearAttention, StateTensor
from kvplan.core.units import round_up
from kvplan.core.weights import Weight
from kvplan.readers.config import MAX_LAYERS, Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import FULL, Heads, Mixer, Weights, attention_cache
from kvplan.readers.families.delta import Qwen35Moe, delta_net
from kvplan.readers.families.hybrids import LINEAR, every
from kvplan.readers.families.kda import INDEXED
from kvplan.readers.families.mamba import MODEL_BYTES
from kvplan.readers.families.primes import primes_from

POSITIONED, NGRAM = "positioned_attention", "ngram_attention"
AXES = 3  # of a position: time, height, width


class Qwen4Exp(Qwen35Moe):
    """Blocks read and write ``hc_count`` streams: their mixing takes the place of norms."""

    known = (LINEAR, INDEXED, FULL)
    final_norm = False

    def kinds(self, c: Config, count: int) -> list[str]:
        """The first attention keeps the positions; n-grams are in the blocks listed from 1."""
        kinds = [INDEXED if kind == FULL else kind for kind in super().kinds(c, count)]
        if INDEXED in kinds:
            kinds[kinds.index(INDEXED)] = POSITIONED
        for place in self.ngram_blocks(c):
            if place > count or kinds[place - 1] != LINEAR:
                raise BadFile(f"The config's ple_layer_ids names block {place}: not a linear one.")
            kinds[place - 1] = NGRAM
        return kinds

    def derive(self, c: Config, count: int) -> list[str]:
        """Attention at the end of each interval."""
        return every(c.whole("full_attention_interval", 4), count, INDEXED)

    @staticmethod
    def ngram_blocks(c: Config) -> list[int]:
        """The blocks with n-grams, each once."""
        return sorted(set(c.wholes("ple_layer_ids", (), least=1)))

    def mixer(self, c: Config, kind: str) -> Mixer:
        """A delta net, alone or behind n-grams, or indexed attention."""
        if kind in (INDEXED, POSITIONED):
            return self.indexed(c, positioned=kind == POSITIONED)
        caches, weights = delta_net(self.net(c))
        if kind == NGRAM:
            return Mixer((*caches, self.ngram_states(c)), weights + self.ngram_weights(c))
        return Mixer(caches, weights)

    def indexed(self, c: Config, *, positioned: bool) -> Mixer:
        """Attention, and the indexer that picks its tokens."""
        heads, dim = self.heads(c), c.whole("indexer_head_dim")
        rows = (c.whole("indexer_n_heads") + c.whole("indexer_kv_heads")) * dim
        weights = (
            *self.attention_weights(c, heads),
            Weight(w.INDEXER, rows, self.hidden(c)),
            *parts.norm(dim, count=2),
        )
        index_dim = c.whole("indexer_kv_heads") * dim
        return Mixer((indexed_cache(heads, index_dim, positioned=positioned),), weights)

    # Embeddings of n-grams: Qwen4ExpTextPLELayer, a convolution over the streams.

    def ngram_states(self, c: Config) -> LinearAttention:
        """The convolution's inputs, a stride of one n-gram apart, and the n-gram's tokens."""
        grams = c.whole("ngram_size", least=2)
        past = (c.whole("ple_conv_kernel_size") - 1) * grams
        conv = StateTensor(
            name="ngram conv",
            shape=(self.streams(c), past),
            element_bytes=MODEL_BYTES,
            split=None,
        )
        tokens = StateTensor(
            name="tokens", shape=(grams - 1,), element_bytes=INT64_BYTES, split=None
        )
        return LinearAttention(tensors=(conv, tokens))

    def ngram_weights(self, c: Config) -> Weights:
        """Keys for all streams, one value, three norms and the convolution."""
        streams, width = self.streams(c), self.ngram_width(c)
        return (
            *parts.linear(w.STATE_IN, width, streams + self.hidden(c)),
            *parts.norm(streams, count=3),
            Weight(w.STATE, streams, c.whole("ple_conv_kernel_size")),
        )

    def embeddings(self, c: Config) -> Weights:
        """The tokens' embedding, and the n-grams' of each block that has them."""
        heads, blocks = self.ngram_heads(c), len(self.ngram_blocks(c))
        found = super().embeddings(c)
        if blocks * heads > MAX_LAYERS:
            raise BadFile(f"The config has {blocks * heads:,} tables of n-grams.")
        divisor = c.whole("make_ngram_vocab_size_divisible_by")
        sizes = primes_from(c.whole("ngram_vocab_size_base"), blocks * heads) if blocks else ()
        for block in range(blocks):
            rows = sum(sizes[block * heads : (block + 1) * heads])
            width = max(1, self.ngram_width(c) // heads)
            found += parts.embedding(round_up(rows, divisor), width)
        return found

    @staticmethod
    def ngram_heads(c: Config) -> int:
        """Tables of one block: as many for pairs as for each longer n-gram."""
        return (c.whole("ngram_size", least=2) - 1) * c.whole("heads_per_ngram")

    def ngram_width(self, c: Config) -> int:
        """Width of all tables together."""
        return c.whole("ple_embed_dim", self.hidden(c))

    # Streams: Qwen4ExpTextGatedResidual.

    def streams(self, c: Config) -> int:
        """Width of all streams together."""
        return c.whole("hc_count") * self.hidden(c)

    def block_norms(self, c: Config) -> Weights:
        """Around attention and network: what is read, and what is written to each stream."""
        written = Weight(w.SCALAR, c.whole("hc_count"), self.streams(c))
        return parts.repeat((*self.reading(c), written), 2)

    def reading(self, c: Config) -> Weights:
        """A norm and a mixture of the streams through a low rank."""
        streams, rank = self.streams(c), c.whole("hc_lowrank")
        return (*parts.norm(streams), Weight(w.SCALAR, rank, streams, 2))

    def ending(self, c: Config) -> Weights:
        """The last mixture, and the head."""
        return self.reading(c) + super().ending(c)


def indexed_cache(heads: Heads, index_dim: int, *, positioned: bool) -> Layer:
    """Keys, values and indexer keys, with the positions where they are kept for all."""
    if not positioned:
        return attention_cache(heads, index_dim=index_dim)
    return PositionedAttention(
        kv_heads=heads.kv,
        key_dim=heads.key_dim,
        value_dim=heads.value_dim,
        query_heads=heads.query,
        index_dim=index_dim,
        position_bytes=AXES * INT64_BYTES,
    )
