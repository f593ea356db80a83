"""Latent attention in GGUF files: DeepSeek V2 and after.

A file of the newer form has ``key_length_mla`` and ``value_length_mla``, the widths of a head as if
it were not compressed, and its ``key_length`` is the latent row. An older one has the heads' widths
there, and llama.cpp keeps its keys and values decompressed (src/llama-hparams.cpp, is_mla).
"""

from __future__ import annotations

from kvplan.core.compressed import CompressedAttention
from kvplan.core.errors import BadFile
from kvplan.core.layers import Layer, SlidingWindow
from kvplan.readers.families.base import NO_OPTIONS, Options
from kvplan.readers.families.latent import Shape
from kvplan.readers.gguf.attention import Architecture
from kvplan.readers.gguf.metadata import Metadata


class Latent(Architecture):
    """A latent row a token in every layer."""

    def __init__(self, m: Metadata, options: Options = NO_OPTIONS) -> None:
        super().__init__(m, options)
        rope = m.whole("rope.dimension_count", least=0)
        ending = "_mla" if m.has("attention.key_length_mla") else ""
        key, value = self.width("key", ending), self.width("value", ending)
        self.latent = Shape(
            heads=max(self.heads, default=1),
            query_rank=m.whole("attention.q_lora_rank", 0, least=0),
            rank=m.whole("attention.kv_lora_rank"),
            nope=key - rope,
            rope=rope,
            value=value,
        )
        if not ending:
            self.warnings.append(
                f"{m.file} has no {m.key('attention.key_length_mla')}: llama.cpp keeps its keys "
                f"and values decompressed, {self.latent.heads} × ({key} + {value}) elements a "
                f"token and layer instead of {self.latent.rank + rope}. "
                "A newer conversion of the model avoids it."
            )

    def attention(self, place: int) -> Layer:
        """The latent row with its rotary key."""
        return self.latent.cache()


class Indexed(Latent):
    """With an indexer's key beside it: DeepSeek V3.2.

    ``attention.indexer.types`` is true for a layer with an indexer of its own and false for one
    that reuses another's choice; absent, every layer has one.
    """

    def __init__(self, m: Metadata, options: Options = NO_OPTIONS) -> None:
        super().__init__(m, options)
        self.index_dim = m.whole("attention.indexer.key_length")
        self.indexers = self.each("attention.indexer.types", self.derive_indexers())

    def derive_indexers(self) -> list[int]:
        """Which layers have an indexer where the file does not say."""
        return [1] * self.count

    def attention(self, place: int) -> Layer:
        """The latent row, and the indexer's key where the layer has one."""
        return self.latent.cache(index_dim=self.index_dim if self.indexers[place] else 0)


class GlmDsa(Indexed):
    """GLM-5: files of a million tokens without the key are GLM-5.2's (src/models/glm-dsa.cpp, July
    2026): the first two layers, then the first of each four.
    """

    def derive_indexers(self) -> list[int]:
        """Every layer, or GLM-5.2's."""
        if self.m.whole("context_length", 1) < 1 << 20:
            return super().derive_indexers()
        return [int(place < 2 or place % 4 == 2) for place in range(self.count)]


class Compressed(Architecture):
    """A window and one entry for each group of tokens: DeepSeek V4.

    ``attention.compress_ratios`` is the size of a layer's groups, 0 for a window alone; groups of 4
    have an indexer (src/models/deepseek4.cpp, July 2026). There may be more ratios than blocks.
    """

    def __init__(self, m: Metadata, options: Options = NO_OPTIONS) -> None:
        super().__init__(m, options)
        key = "attention.compress_ratios"
        ratios = m.value(key)
        if not isinstance(ratios, tuple) or len(ratios) < self.count - self.drafts:
            raise BadFile(f"{m.file} has no {m.key(key)} for each of its {self.count} blocks.")
        self.ratios = m.per_layer(key, len(ratios))
        self.size = m.whole("attention.sliding_window")

    def attention(self, place: int) -> Layer:
        """The window alone keeps its one tensor as keys and as values; compressed layers once."""
        dim, ratio = self.width("key"), self.ratios[place]
        if not ratio:
            return SlidingWindow(
                kv_heads=1,
                key_dim=dim,
                value_dim=dim,
                query_heads=self.heads[place],
                size=self.size,
            )
        index_dim = self.m.whole("attention.indexer.key_length") if ratio == 4 else 0
        return CompressedAttention(dim=dim, size=self.size, ratio=ratio, index_dim=index_dim)
