"""Compressed attention whose entries a few layers keep for all: DeepSeek V4.1.

    layer            0 1 | 2 3 … 7 | 8 … 13 | 14 … 19 | 20 … 39
    reads entries of  -  |    2    |    8   |    14   |    20
    tokens an entry   -  |    2    |    2   |     2   |     1

Every layer keeps its own window. transformers 5.24.0 has no such model: the rule is that of the
reference code published with the weights (inference/model.py of DeepSeek-V4.1-Flash).
"""

from __future__ import annotations

from typing import NamedTuple

from kvplan.core import weights as w
from kvplan.core.compressed import CompressedAttention
from kvplan.core.errors import BadFile
from kvplan.core.layers import Layer, SlidingWindow
from kvplan.core.stack import Stack
from kvplan.core.weights import Weight
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import SLIDING, Decoder, Mixer, Weights
from kvplan.readers.families.composite import Composite
from kvplan.readers.families.compressed import DeepseekV4


class Role(NamedTuple):
    """What a layer does for itself; ``ratio`` is 0 where it keeps no entries."""

    ratio: int
    indexes: bool


class DeepseekV41Text(DeepseekV4):
    """V4's window, output and mixtures; entries without overlap, and tables of n-grams."""

    def mixers(self, c: Config) -> Stack[Mixer]:
        """One attention a role."""
        roles = self.roles(c, self.depth(c))
        return Stack.named(roles, {role: self.of_role(c, role) for role in dict.fromkeys(roles)})

    def roles(self, c: Config, count: int) -> list[Role]:
        """``compress_ratios`` says what a layer reads; the sources alone keep it.

        Raises:
            BadFile: a source without a ratio, or fewer ratios than layers.
        """
        ratios = c.wholes("compress_ratios")
        if len(ratios) < count:
            raise BadFile(f"The config's compress_ratios has {len(ratios)} of {count} layers.")
        sources = frozenset(c.wholes("kv_source_layer_ids"))
        indexers = frozenset(c.wholes("index_source_layer_ids"))
        for place in sources:
            if place < count and not ratios[place]:
                raise BadFile(f"Layer {place} of kv_source_layer_ids has 0 in compress_ratios.")
        return [
            Role(ratios[place] if place in sources else 0, place in indexers)
            for place in range(count)
        ]

    def of_role(self, c: Config, role: Role) -> Mixer:
        """The attention of one role."""
        weights = self.kind_weights(c, SLIDING)
        if role.ratio:
            weights += self.entry_weights(c, role.ratio)
        if role.indexes:
            weights += self.query_weights(c)
        return Mixer((self.role_cache(c, role),), weights)

    def role_cache(self, c: Config, role: Role) -> Layer:
        """A window of one tensor, and the entries with their index keys where they are kept."""
        dim, window = c.whole("head_dim"), c.whole("sliding_window")
        if not role.ratio:
            heads = c.whole("num_attention_heads")
            return SlidingWindow(
                kv_heads=1, key_dim=dim, value_dim=0, query_heads=heads, size=window
            )
        return CompressedAttention(
            dim=dim,
            size=window,
            ratio=role.ratio,
            index_dim=c.whole("index_head_dim"),
            overlaps=False,
        )

    def entry_weights(self, c: Config, ratio: int) -> Weights:
        """Entries, gates where they hold several tokens, and the index key out of an entry."""
        dim, index_dim = c.whole("head_dim"), c.whole("index_head_dim")
        return (
            Weight(w.LATENT, dim, self.hidden(c), 2 if ratio > 1 else 1),
            *parts.norm(dim),
            Weight(w.INDEXER, index_dim, dim),
            *parts.norm(index_dim),
        )

    def query_weights(self, c: Config) -> Weights:
        """An indexer's queries and the weight of each of its heads."""
        heads = c.whole("index_n_heads")
        return (
            Weight(w.INDEXER, heads * c.whole("index_head_dim"), c.whole("q_lora_rank")),
            Weight(w.INDEXER, heads, self.hidden(c)),
        )

    def embeddings(self, c: Config) -> Weights:
        """Tokens, and the n-grams of the layers that look them up."""
        tables = c.wholes("engram_num_embeddings", []) if c.has("engram_layer_ids") else []
        found = super().embeddings(c)
        for rows in tables:
            found += self.engram(c, rows)
        return found

    def engram(self, c: Config, rows: int) -> Weights:
        """A table of which a token reads a few rows, their projection, and the gate's scales."""
        hidden, streams = self.hidden(c), c.whole("hc_mult")
        width, heads = c.whole("engram_head_dim"), c.whole("engram_n_heads")
        read = (c.whole("engram_max_ngram_size") - 1) * heads
        return (
            Weight(w.EMBEDDING, rows, width, 1, 0),
            *parts.linear(w.MLP_IN, read * width, hidden * (streams + 1)),
            *parts.scalar(streams * hidden, 2),
        )

    def ending(self, c: Config) -> Weights:
        """The last network's own mix brings the streams together."""
        return Decoder.ending(self, c)


class DeepseekV41(Composite):
    """With vision: patches, and two projections of squares of them."""

    text_type = "deepseek_v41_text"

    def joint(self, c: Config, text: Config) -> Weights:
        """The projections, and the vectors that start, break and end an image."""
        vision, width = c.section("vision_config"), text.whole("hidden_size")
        square = vision.whole("downsample_ratio", 3) ** 2
        return (
            *parts.linear("", square * vision.whole("hidden_size"), width),
            *parts.linear("", width, width),
            *parts.scalar(width, 3),
        )
