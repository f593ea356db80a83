"""Latent attention in GGUF files: DeepSeek V2 and after.

A file of the newer form has ``key_length_mla`` and ``value_length_mla``, the widths of a head as if
it were not compressed, and its ``key_length`` is the latent row. An older one has the heads' widths
there, and llama.cpp keeps its keys and values decompressed (src/llama-hparams.cpp, is_mla).
"""

from __future__ import annotations

from kvplan.core.layers import Layer
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
    """With an indexer's key beside it: DeepSeek V3.2, GLM-5.

    ``attention.indexer.types`` is 1 for a layer with an indexer of its own and 0 for one that
    reuses another's choice; absent, every layer has one.
    """

    def __init__(self, m: Metadata, options: Options = NO_OPTIONS) -> None:
        super().__init__(m, options)
        self.index_dim = m.whole("attention.indexer.key_length")
        self.indexers = m.per_layer("attention.indexer.types", self.count, [1] * self.count)

    def attention(self, place: int) -> Layer:
        """The latent row, and the indexer's key where the layer has one."""
        return self.latent.cache(index_dim=self.index_dim if self.indexers[place] else 0)
