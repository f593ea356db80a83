"""Multi-head latent attention: DeepSeek V2 and V3, and what is built like them."""

from __future__ import annotations

from kvplan.core.layers import LatentAttention
from kvplan.core.stack import Stack
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Decoder, Mixer, Weights


class DeepseekV3(Decoder):
    """Latent attention; dense networks first, then experts with shared ones beside them."""

    def attention(self, c: Config, window: int | None = None) -> Mixer:
        """models/deepseek_v3/modeling_deepseek_v3.py (transformers 5.24.0), DeepseekV3Attention."""
        heads = c.whole("num_attention_heads")
        rank, rope = c.whole("kv_lora_rank"), c.whole("qk_rope_head_dim")
        nope, value = c.whole("qk_nope_head_dim"), c.whole("v_head_dim")
        cache = LatentAttention(
            rank=rank,
            rope_dim=rope,
            query_heads=heads,
            head_key_dim=nope + rope,
            head_value_dim=value,
        )
        weights = parts.latent_attention(
            self.hidden(c),
            heads,
            query_rank=c.whole("q_lora_rank") if c.has("q_lora_rank") else None,
            kv_rank=rank,
            nope_dim=nope,
            rope_dim=rope,
            value_dim=value,
            bias=c.flag("attention_bias"),
        )
        return Mixer((cache,), weights)

    def networks(self, c: Config) -> Stack[Weights]:
        """``first_k_dense_replace`` dense networks, then mixtures."""
        depth = self.depth(c)
        dense = min(depth, c.whole("first_k_dense_replace", 0, least=0))
        return Stack((self.network(c), self.mixture(c)), (0,) * dense + (1,) * (depth - dense))

    def mixture(self, c: Config) -> Weights:
        """Routed experts and one network as wide as the shared ones together."""
        hidden, inner = self.hidden(c), c.whole("moe_intermediate_size")
        routed = parts.experts(
            hidden, inner, c.whole("n_routed_experts"), c.whole("num_experts_per_tok")
        )
        shared = inner * c.whole("n_shared_experts", 0, least=0)
        return routed + (parts.mlp(hidden, shared) if shared else ())
