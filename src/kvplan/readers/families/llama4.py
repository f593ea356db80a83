"""Llama 4's text model: chunks of attention between full layers, experts at an interval.

models/llama4/configuration_llama4.py and modeling_llama4.py of transformers 5.24.0.
"""

from __future__ import annotations

from kvplan.core.layers import ChunkedAttention
from kvplan.core.stack import Stack
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import FULL, Heads, Mixer, Weights, layer_kinds
from kvplan.readers.families.mixtures import DENSE, SPARSE, Mixture

CHUNKED = "chunked_attention"


class Llama4Text(Mixture):
    """Norms of queries and keys have no scale; an expert's width is that of the shared one."""

    expert_count = "num_local_experts"
    expert_inner = "intermediate_size"
    shared_width = "intermediate_size"

    def mixers(self, c: Config) -> Stack[Mixer]:
        """The same projections over two kinds of cache."""
        heads = self.heads(c)
        weights = self.attention_weights(c, heads)
        full = self.attention(c)
        found = {FULL: full, CHUNKED: full}
        chunk = self.chunk(c)
        if chunk is not None:
            found[CHUNKED] = Mixer((chunked_cache(heads, chunk),), weights)
        return Stack.named(self.kinds(c, self.depth(c)), found)

    def chunk(self, c: Config) -> int | None:
        """Tokens of a chunk; None where attention has none."""
        return c.whole("attention_chunk_size") if c.has("attention_chunk_size") else None

    def kinds(self, c: Config, count: int) -> list[str]:
        """As named, else chunks in the layers with rotary positions."""
        if c.has("layer_types"):
            return layer_kinds(c, count, known=(FULL, CHUNKED))
        if self.chunk(c) is None:
            return [FULL] * count
        return [CHUNKED if rotary else FULL for rotary in self.rotary_layers(c, count)]

    def rotary_layers(self, c: Config, count: int) -> list[int]:
        """1 for each layer with rotary positions: ``no_rope_layers``, empty means the default."""
        named = c.wholes("no_rope_layers", [])
        if named:
            return [*named, *[1] * count][:count]
        step = c.whole("no_rope_layer_interval", 4)
        return [int((place + 1) % step != 0) for place in range(count)]

    def network_kinds(self, c: Config, count: int) -> list[str]:
        """``moe_layers``, else every ``interleave_moe_layer_step``-th."""
        if c.has("moe_layers"):
            sparse = set(c.wholes("moe_layers"))
            return [SPARSE if place in sparse else DENSE for place in range(count)]
        step = c.whole("interleave_moe_layer_step", 1)
        return [DENSE if (place + 1) % step else SPARSE for place in range(count)]

    def network(self, c: Config) -> Weights:
        """A dense network has a width of its own."""
        return parts.mlp(self.hidden(c), c.whole("intermediate_size_mlp"))


def chunked_cache(heads: Heads, size: int) -> ChunkedAttention:
    """The cache of an attention within chunks of ``size`` tokens."""
    return ChunkedAttention(
        kv_heads=heads.kv,
        key_dim=heads.key_dim,
        value_dim=heads.value_dim,
        query_heads=heads.query,
        size=size,
    )
