"""Gated delta nets beside attention: Qwen3-Next, Qwen3.5, OLMo Hybrid, Lara Mini.

The rules are those of transformers 5.24.0, in the file that each class names.
"""

from __future__ import annotations

from typing import NamedTuple

from kvplan.core import weights as w
from kvplan.core.layers import FLOAT32_BYTES
from kvplan.core.stack import Stack
from kvplan.core.states import LinearAttention, StateTensor
from kvplan.core.weights import Weight
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import FULL, SLIDING, Mixer, Weights
from kvplan.readers.families.hybrids import LINEAR, Hybrid, every
from kvplan.readers.families.mamba import MODEL_BYTES


class DeltaNet(NamedTuple):
    """The shape of a gated delta net: heads of keys and of values with their widths."""

    hidden: int
    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    kernel: int

    @property
    def values(self) -> int:
        """Elements of all heads' values."""
        return self.value_heads * self.value_dim

    @property
    def convolved(self) -> int:
        """Channels that pass the convolution: queries, keys and values."""
        return 2 * self.key_heads * self.key_dim + self.values


def delta_net(d: DeltaNet) -> Mixer:
    """models/qwen3_next/modeling_qwen3_next.py, Qwen3NextGatedDeltaNet."""
    conv = StateTensor(name="conv", shape=(d.convolved, d.kernel), element_bytes=MODEL_BYTES)
    matrix = (d.value_heads, d.key_dim, d.value_dim)
    delta = StateTensor(name="delta", shape=matrix, element_bytes=FLOAT32_BYTES)
    return Mixer((LinearAttention(tensors=(conv, delta)),), delta_weights(d))


def delta_weights(d: DeltaNet) -> Weights:
    """Queries, keys, values, output gate, write strength and decay; one convolution for three."""
    return (
        *parts.linear(w.STATE_IN, d.hidden, d.convolved + d.values + 2 * d.value_heads),
        *parts.convolution(
            w.STATE, d.convolved, d.convolved, d.kernel, bias=False, groups=d.convolved
        ),
        Weight(w.STATE, d.value_heads, 1, 2),
        *parts.norm(d.value_dim),
        *parts.linear(w.STATE_OUT, d.values, d.hidden),
    )


class DeltaHybrid(Hybrid):
    """Delta nets, and attention in each ``full_attention_interval``-th block."""

    mlp_bias = False

    def derive(self, c: Config, count: int) -> list[str]:
        """The fourth, the eighth, … unless the interval is another."""
        return every(c.whole("full_attention_interval", 4), count)

    def state(self, c: Config) -> Mixer:
        """The delta net."""
        return delta_net(self.net(c))

    def net(self, c: Config) -> DeltaNet:
        """The delta net that the ``linear_`` keys describe."""
        return DeltaNet(
            hidden=self.hidden(c),
            key_heads=c.whole("linear_num_key_heads"),
            value_heads=c.whole("linear_num_value_heads"),
            key_dim=c.whole("linear_key_head_dim"),
            value_dim=c.whole("linear_value_head_dim"),
            kernel=c.whole("linear_conv_kernel_dim"),
        )


class Qwen35(DeltaHybrid):
    """Dense networks; attention gates its output (models/qwen3_5/modeling_qwen3_5.py)."""

    gated_queries = True
    qk_norm = "head"


class Qwen35Moe(Qwen35):
    """Experts in every block, and a gated one for all.

    models/qwen3_5_moe/modeling_qwen3_5_moe.py.
    """

    shared_gate = True

    def network(self, c: Config) -> Weights:
        """Routed experts and the one for all tokens."""
        return self.mixture(c)

    def mixture(self, c: Config) -> Weights:
        """Routed experts, the one for all tokens, and its gate."""
        hidden = self.hidden(c)
        found = parts.experts(
            hidden,
            c.whole("moe_intermediate_size"),
            c.whole("num_experts"),
            c.whole("num_experts_per_tok"),
        )
        found += parts.mlp(hidden, c.whole("shared_expert_intermediate_size"))
        return found + parts.linear(w.ROUTER, hidden, 1) if self.shared_gate else found


class Qwen3Next(Qwen35Moe):
    """Experts in most blocks (models/qwen3_next/modeling_qwen3_next.py, Qwen3NextDecoderLayer)."""

    def networks(self, c: Config) -> Stack[Weights]:
        """Dense where listed, out of step, or where there are no experts."""
        count, dense = self.depth(c), self.network_alone(c)
        if not c.whole("num_experts", 0, least=0):
            return Stack.uniform(dense, count)
        listed, step = set(c.wholes("mlp_only_layers", ())), c.whole("decoder_sparse_step")
        order = [int(place not in listed and not (place + 1) % step) for place in range(count)]
        return Stack((dense, self.mixture(c)), tuple(order))

    def network_alone(self, c: Config) -> Weights:
        """The dense network."""
        return parts.mlp(self.hidden(c), self.inner(c))


class LaraMini(Qwen35Moe):
    """Windows too, and experts with an ungated one for all.

    models/lara_mini/modeling_lara_mini.py.
    """

    known = (LINEAR, SLIDING, FULL)
    gated_queries = False
    shared_gate = False

    def derive(self, c: Config, count: int) -> list[str]:
        """Five blocks over and over (configuration_lara_mini.py)."""
        pattern = (LINEAR, SLIDING, LINEAR, FULL, SLIDING)
        return [pattern[place % 5] for place in range(count)]


class OlmoHybrid(DeltaHybrid):
    """As many heads as the attention has, unless given.

    models/olmo_hybrid/modeling_olmo_hybrid.py.
    """

    qk_norm = "all"

    def derive(self, c: Config, count: int) -> list[str]:
        """Each fourth block is attention, and the last where there would be none."""
        kinds = every(4, count)
        return kinds if FULL in kinds or not kinds else [*kinds[:-1], FULL]

    def net(self, c: Config) -> DeltaNet:
        """Keys of three quarters of the width together, values twice as wide."""
        hidden, heads = self.hidden(c), c.whole("num_attention_heads")
        key_heads = c.whole("linear_num_key_heads", heads)
        key_dim = c.whole("linear_key_head_dim", max(1, 3 * hidden // (4 * key_heads)))
        return DeltaNet(
            hidden=hidden,
            key_heads=key_heads,
            value_heads=c.whole("linear_num_value_heads", heads),
            key_dim=key_dim,
            value_dim=c.whole("linear_value_head_dim", 2 * key_dim),
            kernel=c.whole("linear_conv_kernel_dim"),
        )
