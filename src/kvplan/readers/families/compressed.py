"""Attention over a window of whole tokens and compressed entries of all: DeepSeek V4.

A layer keeps a window alone, or beside it one entry for each group of tokens: small groups that an
indexer picks from (CSA), or large ones that are all read (HCA). Residuals are several streams, and
the output goes through a rank in groups of heads. Files named here are transformers 5.24.0's, below
``models/deepseek_v4/``.
"""

from __future__ import annotations

from kvplan.core import weights as w
from kvplan.core.compressed import CompressedAttention
from kvplan.core.errors import BadFile
from kvplan.core.layers import Layer, SlidingWindow
from kvplan.core.stack import Stack
from kvplan.core.weights import Weight
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import (
    NO_OPTIONS,
    SLIDING,
    Decoder,
    Description,
    Mixer,
    Options,
    Weights,
    layer_kinds,
)

CSA, HCA = "compressed_sparse_attention", "heavily_compressed_attention"

# configuration_deepseek_v4.py: _COMPRESS_RATIO_TO_LAYER_TYPE and default_compress_rates.
RATIO_TO_KIND = {0: SLIDING, 4: CSA, 128: HCA}
RATES = {CSA: 4, HCA: 128}
OLD_RATE_KEYS = {CSA: "compress_rate_csa", HCA: "compress_rate_hca"}


class DeepseekV4(Decoder):
    """modeling_deepseek_v4.py: one key that is also the value, and a mixture in every block."""

    def mixers(self, c: Config) -> Stack[Mixer]:
        """One attention a kind of layer."""
        kinds = self.kinds(c, self.depth(c))
        found = {
            kind: Mixer((self.cache(c, kind),), self.kind_weights(c, kind))
            for kind in dict.fromkeys(kinds)
        }
        return Stack.named(kinds, found)

    def kinds(self, c: Config, count: int) -> list[str]:
        """By name, else by ratio, else as the class alternates; what is past the last layer is cut.

        configuration_deepseek_v4.py, __post_init__.
        """
        if c.has("layer_types"):
            named = c.words("layer_types")
        elif c.has("compress_ratios"):
            named = by_ratio(c.wholes("compress_ratios"))
        else:
            named = [CSA if place > 2 and place % 2 else HCA for place in range(count)]
        known = (SLIDING, CSA, HCA)
        return layer_kinds(c.with_values(layer_types=named[:count]), count, known=known)

    def rate(self, c: Config, kind: str) -> int:
        """Tokens in a group: under an older key, in the table of rates, or the class's."""
        if c.has(OLD_RATE_KEYS[kind]):
            return c.whole(OLD_RATE_KEYS[kind])
        return c.section("compress_rates").whole(kind, RATES[kind])

    def cache(self, c: Config, kind: str) -> Layer:
        """The window alone keeps its one tensor as keys and as values; compressed layers once."""
        dim, window = c.whole("head_dim"), c.whole("sliding_window")
        if kind == SLIDING:
            heads = c.whole("num_attention_heads")
            return SlidingWindow(
                kv_heads=1, key_dim=dim, value_dim=dim, query_heads=heads, size=window
            )
        index_dim = c.whole("index_head_dim") if kind == CSA else 0
        return CompressedAttention(
            dim=dim, size=window, ratio=self.rate(c, kind), index_dim=index_dim
        )

    def kind_weights(self, c: Config, kind: str) -> Weights:
        """The projections of every kind, and the compressor of this one."""
        hidden, dim = self.hidden(c), c.whole("head_dim")
        heads, groups = c.whole("num_attention_heads"), c.whole("o_groups")
        ranks = groups * c.whole("o_lora_rank")
        found = (
            *parts.latent_query(hidden, c.whole("q_lora_rank"), heads * dim),
            *parts.latent_down(hidden, dim, 0),
            Weight(w.OUTPUT, ranks, heads * dim // groups),
            Weight(w.OUTPUT, hidden, ranks),
            *parts.scalar(heads),
        )
        if kind == HCA:
            return found + compressor(w.LATENT, hidden, dim, dim, self.rate(c, kind))
        if kind == CSA:
            return found + self.sparse_compressor(c)
        return found

    def sparse_compressor(self, c: Config) -> Weights:
        """Two series a token, for its own group's entry and the next one's, and the indexer."""
        hidden, rate = self.hidden(c), self.rate(c, CSA)
        dim, index_dim = c.whole("head_dim"), c.whole("index_head_dim")
        index_heads = c.whole("index_n_heads")
        return (
            *compressor(w.LATENT, hidden, dim, 2 * dim, rate),
            *compressor(w.INDEXER, hidden, index_dim, 2 * index_dim, rate),
            Weight(w.INDEXER, index_heads * index_dim, c.whole("q_lora_rank")),
            Weight(w.INDEXER, index_heads, hidden),
        )

    def network(self, c: Config) -> Weights:
        """Routed experts and one shared; a layer routed by token id has the same parameters."""
        hidden, inner = self.hidden(c), c.whole("moe_intermediate_size")
        count = c.whole("n_routed_experts")
        routed = parts.experts(hidden, inner, count, c.whole("num_experts_per_tok"))
        return routed + parts.mlp(hidden, inner, bias=self.says(c, self.mlp_bias))

    def block_norms(self, c: Config) -> Weights:
        """The norms, and a hyper-connection before the attention and before the network."""
        streams = c.whole("hc_mult")
        mixes = (2 + streams) * streams
        connection = parts.hyper_connection(self.hidden(c), streams, mixes, 3)
        return super().block_norms(c) + parts.repeat(connection, 2)

    def ending(self, c: Config) -> Weights:
        """The streams come together before the final norm."""
        streams = c.whole("hc_mult")
        return parts.hyper_connection(self.hidden(c), streams, streams, 1) + super().ending(c)


class DeepseekReference(DeepseekV4):
    """DeepSeek's own code: the same model under another type, with V4's defaults."""

    def describe(self, c: Config, options: Options = NO_OPTIONS) -> Description:
        """As a ``deepseek_v4``."""
        return super().describe(Config(c.raw, "deepseek_v4", c.path), options)


def by_ratio(ratios: list[int]) -> list[str]:
    """The kind of each layer by the tokens in its groups.

    Raises:
        BadFile: a ratio that the model does not have.
    """
    for ratio in dict.fromkeys(ratios):
        if ratio not in RATIO_TO_KIND:
            raise BadFile(
                f"The config's compress_ratios has {ratio}: not one of "
                f"{', '.join(map(str, RATIO_TO_KIND))}."
            )
    return [RATIO_TO_KIND[ratio] for ratio in ratios]


def compressor(role: str, hidden: int, dim: int, width: int, rate: int) -> Weights:
    """Entries and their gates, a bias for each place in a group, and the norm of an entry."""
    return (
        Weight(role, width, hidden, 2),
        *parts.scalar(rate * width),
        *parts.norm(dim),
    )
