"""Lightning attention: MiniMax-01 and MiniMax-M1, with softmax attention in some blocks.

MiniMax follows transformers 5.24.0 (models/minimax/configuration_minimax.py, modeling_minimax.py).
MiniMax-Text-01 and M1 were first published with code of their own
(MiniMaxAI/MiniMax-Text-01, modeling_minimax_text_01.py).
"""

from __future__ import annotations

from kvplan.core import weights as w
from kvplan.core.errors import BadFile
from kvplan.core.layers import FLOAT32_BYTES
from kvplan.core.states import LinearAttention, StateTensor
from kvplan.core.weights import Weight
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import FULL, Heads, Mixer, Weights
from kvplan.readers.families.hybrids import LINEAR, Hybrid
from kvplan.readers.families.mamba import MODEL_BYTES


class MiniMax(Hybrid):
    """Experts in every block; softmax attention first and then in every other block."""

    attention_bias = False
    state_bytes = MODEL_BYTES

    def derive(self, c: Config, count: int) -> list[str]:
        """Softmax attention in the even places."""
        return [LINEAR if place % 2 else FULL for place in range(count)]

    def state(self, c: Config) -> Mixer:
        """A matrix of keys by values for each query head; a norm and a gate on the output."""
        hidden, (heads, _, dim, _) = self.hidden(c), self.heads(c)
        wide = heads * dim
        matrix = StateTensor(name="kv", shape=(heads, dim, dim), element_bytes=self.state_bytes)
        weights = (
            Weight(w.STATE_IN, wide, hidden, 4),
            *parts.norm(wide),
            Weight(w.STATE_OUT, hidden, wide),
        )
        return Mixer((LinearAttention(tensors=(matrix,)),), weights)

    def network(self, c: Config) -> Weights:
        """Routed experts."""
        experts, drawn = c.whole("num_local_experts"), c.whole("num_experts_per_tok")
        return parts.experts(self.hidden(c), self.inner(c), experts, drawn)

    def heads(self, c: Config) -> Heads:
        """A width of 0 is an absent one."""
        query = c.whole("num_attention_heads")
        dim = c.whole("head_dim", 0, least=0) or max(1, self.hidden(c) // query)
        return Heads(query, c.whole("num_key_value_heads", query), dim, dim)


class MiniMaxText01(MiniMax):
    """``attn_type_list`` says 1 for softmax attention; the state is kept in float32."""

    state_bytes = FLOAT32_BYTES

    def kinds(self, c: Config, count: int) -> list[str]:
        """One number a block."""
        listed = c.wholes("attn_type_list")
        if len(listed) != count or max(listed, default=0) > 1:
            raise BadFile(f"The config's attn_type_list is not {count} numbers of 0 or 1.")
        return [FULL if softmax else LINEAR for softmax in listed]

    def network(self, c: Config) -> Weights:
        """With a network for all tokens and its coefficient, where it has a width."""
        hidden, shared = self.hidden(c), c.whole("shared_intermediate_size", 0, least=0)
        found = super().network(c)
        if shared:
            found += parts.mlp(hidden, shared) + parts.linear(w.ROUTER, hidden, 1)
        return found
