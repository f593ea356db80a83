"""Zaya: attention whose queries and keys pass convolutions, and values that lag by a token.

models/zaya/configuration_zaya.py and modeling_zaya.py (transformers 5.24.0).
"""

from __future__ import annotations

from kvplan.core import weights as w
from kvplan.core.stack import Stack
from kvplan.core.states import ConvolutionState, StateTensor
from kvplan.core.weights import Weight
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Heads, Mixer, Weights, attention_cache
from kvplan.readers.families.hybrids import HYBRID, HYBRID_SLIDING, Hybrid
from kvplan.readers.families.mamba import MODEL_BYTES


class Zaya(Hybrid):
    """Convolved attention, experts behind a router that is a network, scaled residuals."""

    known = (HYBRID, HYBRID_SLIDING)
    head_bias = "lm_head_bias"

    def derive(self, c: Config, count: int) -> list[str]:
        """Attention over all tokens everywhere."""
        return [HYBRID] * count

    def mixer(self, c: Config, kind: str) -> Mixer:
        """Attention, the convolutions' inputs, and half of the last value."""
        heads = self.heads(c)
        cache = attention_cache(
            heads, c.whole("sliding_window") if kind == HYBRID_SLIDING else None
        )
        channels = (heads.query + heads.kv) * heads.key_dim
        kernel = c.whole("cca_time0") + c.whole("cca_time1") - 2
        conv = StateTensor(name="conv", shape=(channels, kernel), element_bytes=MODEL_BYTES)
        lag = heads.kv * heads.key_dim // 2
        value = StateTensor(name="value", shape=(lag,), element_bytes=MODEL_BYTES)
        state = ConvolutionState(tensors=(conv, value))
        return Mixer((cache, state), self.attention_weights(c, heads))

    def attention_weights(self, c: Config, heads: Heads) -> Weights:
        """Values in two halves, one convolution a channel and one a head, a temperature."""
        channels = (heads.query + heads.kv) * heads.key_dim
        return (
            *super().attention_weights(c, heads),
            *parts.convolution(w.STATE, channels, channels, c.whole("cca_time0"), groups=channels),
            *parts.convolution(
                w.STATE, channels, channels, c.whole("cca_time1"), groups=heads.query + heads.kv
            ),
            *parts.scalar(heads.kv),
        )

    def networks(self, c: Config) -> Stack[Weights]:
        """The first router has no scale for the one before it."""
        count = self.depth(c)
        scale = parts.scalar(c.whole("router_hidden_size"))
        network = self.network(c)
        return Stack((network, network + scale), (0, *[1] * (count - 1))[:count])

    def network(self, c: Config) -> Weights:
        """Experts, and a router of three layers with one class more: none of them."""
        hidden, rank, count = self.hidden(c), c.whole("router_hidden_size"), c.whole("num_experts")
        inner, drawn = c.whole("moe_intermediate_size"), c.whole("num_experts_per_tok")
        return (
            *parts.linear(w.ROUTER, hidden, rank, bias=True),
            *parts.norm(rank),
            *parts.repeat(parts.linear(w.ROUTER, rank, rank, bias=True), 2),
            Weight(w.ROUTER, 1, rank),
            *parts.experts(hidden, inner, count, drawn, routed_from=rank),
        )

    def block_norms(self, c: Config) -> Weights:
        """Two norms, and scale and shift of both operands of both residuals."""
        hidden = self.hidden(c)
        return (*super().block_norms(c), *parts.scalar(hidden, 8))

    def embeddings(self, c: Config) -> Weights:
        """With a scale and a shift."""
        return super().embeddings(c) + parts.scalar(self.hidden(c), 2)
