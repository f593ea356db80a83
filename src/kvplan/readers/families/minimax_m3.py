"""MiniMax M3's text model: an indexer's key beside the keys and values of some layers.

models/minimax_m3_vl/configuration_minimax_m3_vl.py and modeling_minimax_m3_vl.py of transformers
5.24.0.
"""

from __future__ import annotations

from kvplan.core import weights as w
from kvplan.core.stack import Stack
from kvplan.core.weights import Weight
from kvplan.readers.config import Config
from kvplan.readers.families.base import (
    FULL,
    NO_OPTIONS,
    Description,
    Mixer,
    Options,
    attention_cache,
    layer_flags,
    layer_kinds,
)
from kvplan.readers.families.mixtures import DENSE, SPARSE, Named

INDEXED = "minimax_m3_sparse"

# The class's key, and the older one inside ``sparse_attention_config``.
OLDER_KEYS = {"index_n_heads": "sparse_num_index_heads", "index_head_dim": "sparse_index_dim"}


class MiniMaxM3Text(Named):
    """Norms on each head's queries and keys; a shared network; dense blocks are wider."""

    attention_bias = False
    qk_norm = "head"
    dense = 0
    expert_count = "num_local_experts"
    expert_inner = "intermediate_size"
    shared_width = "shared_intermediate_size"

    def mixers(self, c: Config) -> Stack[Mixer]:
        """Attention with an indexer, and without."""
        kinds = self.kinds(c, self.depth(c))
        plain = self.attention(c)
        return Stack.named(kinds, {FULL: plain, INDEXED: self.indexed(c, plain)})

    def kinds(self, c: Config, count: int) -> list[str]:
        """``layer_types``, else the flags in ``sparse_attention_config``, else all full."""
        if c.has("layer_types"):
            return layer_kinds(c, count, known=(FULL, INDEXED))
        older = c.section("sparse_attention_config")
        if not older.has("sparse_attention_freq"):
            return [FULL] * count
        flags = layer_flags(older, "sparse_attention_freq", count)
        return [INDEXED if flag else FULL for flag in flags]

    def indexed(self, c: Config, plain: Mixer) -> Mixer:
        """The attention with an indexer (MiniMaxM3VLIndexer), of which one key for all is kept."""
        heads, dim = self.index_shape(c, "index_n_heads"), self.index_shape(c, "index_head_dim")
        hidden = self.hidden(c)
        indexer = (
            Weight(w.INDEXER, heads * dim, hidden),
            Weight(w.INDEXER, dim, hidden),
            Weight(w.NORM, dim, 1, 2),
        )
        cache = attention_cache(self.heads(c), index_dim=dim)
        return Mixer((cache,), plain.weights + indexer)

    def index_shape(self, c: Config, key: str) -> int:
        """A number of the indexer, under its older key where the file has that."""
        return c.section("sparse_attention_config").whole(OLDER_KEYS[key], c.whole(key))

    def derive_networks(self, c: Config, count: int) -> list[str]:
        """The flags in ``moe_layer_freq``, else all sparse."""
        if not c.has("moe_layer_freq"):
            return [SPARSE] * count
        return [SPARSE if flag else DENSE for flag in layer_flags(c, "moe_layer_freq", count)]

    def inner(self, c: Config) -> int:
        """Width of a dense network."""
        return c.whole("dense_intermediate_size")


class MiniMaxM3(MiniMaxM3Text):
    """The text model published by itself, under a type that has no class of its own."""

    def describe(self, c: Config, options: Options = NO_OPTIONS) -> Description:
        """The same keys with the defaults of the text model's class."""
        return super().describe(Config(c.raw, "minimax_m3_vl_text", c.path), options)
