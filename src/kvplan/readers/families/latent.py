"""Multi-head latent attention: DeepSeek V2 and V3, and what is built like them.

Files named here are transformers 5.24.0's, below ``models/``.
"""

from __future__ import annotations

from typing import NamedTuple, TypedDict

from kvplan.core import weights as w
from kvplan.core.latent import IndexedLatentAttention, LatentAttention
from kvplan.core.latent_windows import SlidingLatentAttention
from kvplan.core.stack import Stack
from kvplan.core.weights import Weight
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Decoder, Mixer, Weights, layer_kinds

DENSE, SPARSE = "dense", "sparse"


class Row(TypedDict):
    """What every kind of latent cache is built of."""

    rank: int
    rope_dim: int
    query_heads: int
    head_key_dim: int
    head_value_dim: int


class Shape(NamedTuple):
    """The widths of a latent attention; ``query_rank`` is 0 where queries are projected at once."""

    heads: int
    query_rank: int
    rank: int
    nope: int
    rope: int
    value: int

    def cache(
        self, window: int | None = None, index_dim: int = 0, index_bytes: int = 0
    ) -> LatentAttention:
        """What a layer of these widths keeps: over a window, or with an indexer's keys."""
        row: Row = {
            "rank": self.rank,
            "rope_dim": self.rope,
            "query_heads": self.heads,
            "head_key_dim": self.nope + self.rope,
            "head_value_dim": self.value,
        }
        if window is not None:
            return SlidingLatentAttention(**row, size=window)
        if index_dim:
            return IndexedLatentAttention(**row, index_dim=index_dim, index_bytes=index_bytes)
        return LatentAttention(**row)


class Latent(Decoder):
    """A decoder of latent attention and gated networks.

    deepseek_v3/modeling_deepseek_v3.py, DeepseekV3Attention: ``attention_bias`` is on the
    down-projections and the output, never on a direct query projection.
    """

    mlp_bias: str | bool = False

    def attention(self, c: Config, window: int | None = None) -> Mixer:
        """A latent row a token, over all tokens or a window of them."""
        shape = self.shape(c)
        return Mixer((shape.cache(window),), self.latent_weights(c, shape))

    def shape(self, c: Config) -> Shape:
        """The widths as the config has them."""
        return Shape(
            heads=c.whole("num_attention_heads"),
            query_rank=c.whole("q_lora_rank", 0, least=0),
            rank=c.whole("kv_lora_rank"),
            nope=c.whole("qk_nope_head_dim", least=0),
            rope=c.whole("qk_rope_head_dim", least=0),
            value=c.whole("v_head_dim"),
        )

    def latent_weights(self, c: Config, shape: Shape) -> Weights:
        """The projections through the ranks, and their norms."""
        return parts.latent_attention(
            self.hidden(c),
            shape.heads,
            query_rank=shape.query_rank,
            kv_rank=shape.rank,
            nope_dim=shape.nope,
            rope_dim=shape.rope,
            value_dim=shape.value,
            bias=self.says(c, self.attention_bias),
        )


class MiniCPM3(Latent):
    """Latent attention with dense networks; values as wide as a head where the file is silent."""

    mlp_bias = "mlp_bias"

    def shape(self, c: Config) -> Shape:
        """minicpm3/configuration_minicpm3.py, __post_init__: the width of a value."""
        if not c.has("v_head_dim"):
            width = max(1, self.hidden(c) // c.whole("num_attention_heads"))
            c = c.with_values(v_head_dim=width)
        return super().shape(c)


class DeepseekV3(Latent):
    """Dense networks first, then experts with shared ones beside them.

    ``expert_keys`` are the keys that may give the number of experts, the first with a value wins.
    """

    expert_keys: tuple[str, ...] = ("n_routed_experts",)

    def networks(self, c: Config) -> Stack[Weights]:
        """The network of every block, by its kind."""
        build = {DENSE: self.network, SPARSE: self.mixture}
        kinds = self.network_kinds(c, self.depth(c))
        return Stack.named(kinds, {kind: build[kind](c) for kind in dict.fromkeys(kinds)})

    def network_kinds(self, c: Config, count: int) -> list[str]:
        """Dense ones first; all dense where ``n_routed_experts`` is null, as in the first code."""
        routed = any(map(c.has, self.expert_keys))
        dense = min(count, self.leading_dense(c)) if routed else count
        return [DENSE] * dense + [SPARSE] * (count - dense)

    def leading_dense(self, c: Config) -> int:
        """The number of dense networks."""
        return c.whole("first_k_dense_replace", 0, least=0)

    def mixture(self, c: Config) -> Weights:
        """Routed experts and the network that every token passes."""
        count = c.first_whole(*self.expert_keys)
        drawn = c.whole("num_experts_per_tok", count)
        routed = parts.experts(self.hidden(c), c.whole("moe_intermediate_size"), count, drawn)
        return routed + self.shared(c)

    def shared(self, c: Config) -> Weights:
        """One network as wide as the shared experts together."""
        width = self.shared_width(c) * c.whole("n_shared_experts", 0, least=0)
        return parts.mlp(self.hidden(c), width, bias=self.says(c, self.mlp_bias))

    def shared_width(self, c: Config) -> int:
        """The width of one shared expert."""
        return c.whole("moe_intermediate_size")


class DeepseekV2(DeepseekV3):
    """deepseek_v2/modeling_deepseek_v2.py: dense and shared networks may have biases."""

    mlp_bias = "mlp_bias"


class Glm4MoeLite(DeepseekV3):
    """``mlp_layer_types`` names each network; without it the first one is dense.

    glm4_moe_lite/configuration_glm4_moe_lite.py: ``first_k_dense_replace`` has no say.
    """

    def network_kinds(self, c: Config, count: int) -> list[str]:
        """As the file names them, else as the config class derives them."""
        if c.has("mlp_layer_types"):
            return layer_kinds(c, count, key="mlp_layer_types", known=(DENSE, SPARSE))
        return self.derive_networks(c, count)

    def derive_networks(self, c: Config, count: int) -> list[str]:
        """Dense ones first."""
        return super().network_kinds(c, count)

    def leading_dense(self, c: Config) -> int:
        """One."""
        return 1


class AXK1(Glm4MoeLite):
    """axk1/modeling_axk1.py: a norm behind each mixture."""

    def derive_networks(self, c: Config, count: int) -> list[str]:
        """axk1/configuration_axk1.py, __post_init__."""
        return every_sparse(c, count)

    def mixture(self, c: Config) -> Weights:
        """With ``post_mlp_layernorm``."""
        return super().mixture(c) + parts.norm(self.hidden(c))


class LongcatFlash(Latent):
    """Two attentions and two dense networks a layer, and one mixture across both.

    longcat_flash/modeling_longcat_flash.py, LongcatFlashDecoderLayer.
    """

    norms = 4

    def depth(self, c: Config) -> int:
        """``num_hidden_layers`` counts attentions and, where it is there, has the say."""
        return c.layers() // 2 if c.in_file("num_hidden_layers") else c.layers("num_layers")

    def attention(self, c: Config, window: int | None = None) -> Mixer:
        """Both attentions of a layer."""
        caches, weights = super().attention(c, window)
        return Mixer(caches * 2, parts.repeat(weights, 2))

    def network(self, c: Config) -> Weights:
        """Both dense networks and the mixture between them."""
        return parts.repeat(super().network(c), 2) + self.mixture(c)

    def mixture(self, c: Config) -> Weights:
        """Zero experts have a row in the router and, unused, in the input projections."""
        hidden, inner = self.hidden(c), c.whole("moe_intermediate_size")
        routed = c.whole("n_routed_experts")
        total = routed + c.whole("zero_expert_num", 0, least=0)
        drawn = min(c.whole("num_experts_per_tok"), total)
        router = parts.linear(w.ROUTER, hidden, total, c.flag("router_bias"))
        return (
            Weight(w.EXPERT_IN, inner, hidden, 2 * total, 2 * drawn),
            Weight(w.EXPERT_OUT, hidden, inner, routed, min(drawn, routed)),
            *router,
        )


def every_sparse(c: Config, count: int) -> list[str]:
    """Mixtures from ``first_k_dense_replace`` on, in each layer that ``moe_layer_freq`` picks.

    The frequency is a divisor of the layer's place, or a list that says it of every layer.
    """
    first = c.whole("first_k_dense_replace", 1, least=0)
    if c.is_list("moe_layer_freq"):
        picked = c.wholes("moe_layer_freq")[:count]
        picked += [0] * (count - len(picked))
    else:
        every = c.whole("moe_layer_freq", 1)
        picked = [place % every == 0 for place in range(count)]
    return [SPARSE if place >= first and picked[place] else DENSE for place in range(count)]
