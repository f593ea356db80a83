"""Mixtures of experts over grouped-query attention.

``Mixture`` is the template: which blocks are sparse, the routed experts of a sparse block and what
stands beside them. Classes cite ``models/<type>/modeling_<type>.py`` of transformers 5.24.0.
"""

from __future__ import annotations

from kvplan.core import weights as w
from kvplan.core.errors import BadFile
from kvplan.core.stack import Stack
from kvplan.core.weights import Weight
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Decoder, Heads, Weights, layer_kinds

DENSE, SPARSE = "dense", "sparse"


class Mixture(Decoder):
    """A decoder whose networks are experts, in every block or in some.

    ``expert_count``, ``drawn`` and ``expert_inner`` are the keys of the number of routed experts,
    of those that a token passes and of the width of one. The network beside them is as wide as
    ``shared_width`` says, or as ``shared_count`` experts together. ``mlp_bias`` is that of the
    dense and the shared networks, ``expert_bias`` that of the experts; ``router_bias`` whether the
    router has a parameter of one element an expert (a correction kept as a buffer is none).
    """

    expert_count: str = "num_experts"
    drawn: str = "num_experts_per_tok"
    expert_inner: str = "moe_intermediate_size"
    shared_count: str = ""
    shared_width: str = ""
    expert_bias: bool = False
    router_bias: bool = False
    mlp_bias: str | bool = False

    def networks(self, c: Config) -> Stack[Weights]:
        """Dense networks and mixtures, each described only where a block has one."""
        kinds = self.network_kinds(c, self.depth(c))
        found = {
            kind: self.mixture(c) if kind == SPARSE else self.network(c)
            for kind in dict.fromkeys(kinds)
        }
        return Stack.named(kinds, found)

    def network_kinds(self, c: Config, count: int) -> list[str]:
        """Which blocks are sparse: all of them unless a family says otherwise."""
        return [SPARSE] * count

    def mixture(self, c: Config) -> Weights:
        """The routed experts with their router, and the shared network."""
        return self.routed(c) + self.shared(c)

    def routed(self, c: Config) -> Weights:
        """The experts and the router over them."""
        return parts.experts(
            self.hidden(c),
            c.whole(self.expert_inner),
            c.whole(self.expert_count),
            self.num_drawn(c),
            bias=self.expert_bias,
            router_bias=self.router_bias,
        )

    def num_drawn(self, c: Config) -> int:
        """Experts that a token passes."""
        return c.whole(self.drawn)

    def shared(self, c: Config) -> Weights:
        """The network that every token passes beside the experts."""
        inner = self.shared_inner(c)
        if not inner:
            return ()
        return parts.mlp(self.hidden(c), inner, bias=self.says(c, self.mlp_bias))

    def shared_inner(self, c: Config) -> int:
        """Its width, 0 where there is none."""
        if self.shared_width:
            return c.whole(self.shared_width, 0, least=0)
        if self.shared_count:
            return c.whole(self.expert_inner) * c.whole(self.shared_count, 0, least=0)
        return 0


class DenseFirst(Mixture):
    """``first_k_dense_replace`` dense blocks, then sparse ones."""

    first_dense: str = "first_k_dense_replace"

    def network_kinds(self, c: Config, count: int) -> list[str]:
        """Dense blocks first."""
        dense = min(count, c.whole(self.first_dense, 0, least=0))
        return [DENSE] * dense + [SPARSE] * (count - dense)


class Named(Mixture):
    """Blocks named in ``mlp_layer_types``; where it is absent, ``dense`` dense ones come first."""

    dense: int = 1

    def network_kinds(self, c: Config, count: int) -> list[str]:
        """The file's list, else as the config class derives it."""
        if c.has("mlp_layer_types"):
            return layer_kinds(c, count, key="mlp_layer_types", known=(DENSE, SPARSE))
        return self.derive_networks(c, count)

    def derive_networks(self, c: Config, count: int) -> list[str]:
        """Dense blocks first."""
        dense = min(count, self.dense)
        return [DENSE] * dense + [SPARSE] * (count - dense)


class Stepped(Mixture):
    """Every ``decoder_sparse_step``-th block is sparse, except those in ``mlp_only_layers``."""

    def network_kinds(self, c: Config, count: int) -> list[str]:
        """models/qwen2_moe, Qwen2MoeDecoderLayer."""
        if not c.whole(self.expert_count, least=0):
            return [DENSE] * count
        dense = set(self.dense_places(c))
        step = c.whole("decoder_sparse_step", 1)
        return [DENSE if place in dense or (place + 1) % step else SPARSE for place in range(count)]

    def dense_places(self, c: Config) -> list[int]:
        """The blocks that are dense whatever the step."""
        return c.wholes("mlp_only_layers", [])


class Mixtral(Mixture):
    """Experts in every block, attention without biases."""

    attention_bias = False
    expert_count = "num_local_experts"
    expert_inner = "intermediate_size"


class MiniMaxM2(Mixtral):
    """Norms over all heads of the queries and of the keys."""

    qk_norm = "all"


class Phimoe(Mixture):
    """Layer norms; the head may have a bias."""

    norm = "layer"
    expert_count = "num_local_experts"
    expert_inner = "intermediate_size"
    head_bias = "lm_head_bias"


class Olmoe(Mixture):
    """Experts in every block; norms over all heads (FlexOlmo puts the block norms behind)."""

    expert_inner = "intermediate_size"
    qk_norm = "all"


class AriaText(Mixture):
    """Shared experts as one network that alone may have biases."""

    expert_count = "moe_num_experts"
    drawn = "moe_topk"
    expert_inner = "intermediate_size"
    shared_count = "moe_num_shared_experts"
    mlp_bias = "mlp_bias"


class Dbrx(Mixture):
    """Sections for attention and experts; layer norms without a shift.

    Defaults of the sections: models/dbrx/configuration_dbrx.py, DbrxAttentionConfig, DbrxFFNConfig.
    """

    attention_bias = False

    def heads(self, c: Config) -> Heads:
        """KV heads are in ``attn_config``; the width of a head is always derived."""
        query = c.whole("n_heads")
        dim = max(1, c.whole("d_model") // query)
        return Heads(query, c.section("attn_config").whole("kv_n_heads", 1), dim, dim)

    def hidden(self, c: Config) -> int:
        """Under the type's own name."""
        return c.whole("d_model")

    def depth(self, c: Config) -> int:
        """Under the type's own name."""
        return c.layers("n_layers")

    def routed(self, c: Config) -> Weights:
        """The experts of ``ffn_config``."""
        ffn = c.section("ffn_config")
        return parts.experts(
            self.hidden(c),
            ffn.whole("ffn_hidden_size", 3584),
            ffn.whole("moe_num_experts", 4),
            ffn.whole("moe_top_k", 1),
        )


class Ernie45Moe(Mixture):
    """Sparse at an interval between a first and a last block; the router's correction counts."""

    attention_bias = "use_bias"
    mlp_bias = "use_bias"
    head_bias = "use_bias"
    expert_count = "moe_num_experts"
    drawn = "moe_k"
    shared_count = "moe_num_shared_experts"
    router_bias = True

    def network_kinds(self, c: Config, count: int) -> list[str]:
        """models/ernie4_5_moe, Ernie4_5_MoeDecoderLayer; -1 as the end means the last block."""
        first, last = c.whole("moe_layer_start_index", 0, least=0), self.last_sparse(c, count)
        step = c.whole("moe_layer_interval", 1)
        return [
            SPARSE if first <= place <= last and not (place + 1) % step else DENSE
            for place in range(count)
        ]

    def last_sparse(self, c: Config, count: int) -> int:
        """The place of the last block that may be sparse."""
        last = c.whole("moe_layer_end_index", -1, least=-1)
        return count - 1 if last == -1 else last


class Ernie45VlMoeText(Named):
    """Experts for text and narrower ones for images, each with its router.

    A token passes those of its own kind alone, so the experts for images count as not active.
    """

    attention_bias = "use_bias"
    mlp_bias = "use_bias"
    expert_count = "moe_num_experts"
    drawn = "moe_k"

    def mixture(self, c: Config) -> Weights:
        """models/ernie4_5_vl_moe, Ernie4_5_VLMoeMoeBlock: widths default to 1536 and 512."""
        widths = c.wholes("moe_intermediate_size", (1536, 512), least=1)
        if len(widths) != 2:
            raise BadFile(
                "The config's moe_intermediate_size is not a width for text and one for images."
            )
        text, vision = widths
        hidden, count = self.hidden(c), c.whole(self.expert_count)
        shared = text * c.whole("moe_num_shared_experts", 0, least=0)
        beside = parts.mlp(hidden, shared, bias=self.says(c, self.mlp_bias)) if shared else ()
        return (
            *parts.experts(hidden, text, count, self.num_drawn(c), router_bias=True),
            *parts.experts(hidden, vision, count, 0, router_bias=True),
            *beside,
        )


class Glm4vMoeText(DenseFirst):
    """Dense blocks first; no bias on the attention's output."""

    output_bias = False
    expert_count = "n_routed_experts"
    shared_count = "n_shared_experts"


class Glm4Moe(Glm4vMoeText):
    """Norms of queries and keys where ``use_qk_norm`` says so."""

    def query_norm(self, c: Config) -> str:
        """models/glm4_moe, Glm4MoeAttention."""
        return "head" if c.flag("use_qk_norm") else ""


class SolarOpen(Mixture):
    """Experts in every block and shared ones; no bias on the attention's output."""

    output_bias = False
    expert_count = "n_routed_experts"
    shared_count = "n_shared_experts"


class HunYuanMoe(Mixture):
    """Experts as wide as the shared network beside them; norms of queries and keys."""

    qk_norm = "head"
    expert_inner = "intermediate_size"
    shared_width = "intermediate_size"

    def num_drawn(self, c: Config) -> int:
        """One number, or a list of one a layer of which they are all alike."""
        if c.is_list("moe_topk"):
            return max(c.wholes("moe_topk"), default=1)
        return c.whole("moe_topk")


class HyV3(Named):
    """One dense block first; norms of queries and keys."""

    qk_norm = "head"
    mlp_bias = "mlp_bias"
    shared_count = "num_shared_experts"


class JetMoe(Mixture):
    """Experts in the attention too: of the query and output projections, over shared keys.

    models/jetmoe, JetMoeMoA: a token draws ``num_experts_per_tok`` pairs of projections, and each
    has as many query heads as there are KV heads.
    """

    expert_count = "num_local_experts"
    expert_inner = "intermediate_size"

    def heads(self, c: Config) -> Heads:
        """Query heads of the drawn experts together."""
        kv, dim = c.whole("num_key_value_heads"), c.whole("kv_channels")
        return Heads(kv * self.num_drawn(c), kv, dim, dim)

    def attention_weights(self, c: Config, heads: Heads) -> Weights:
        """Experts of projections with their router and bias, then keys and values."""
        hidden, width = self.hidden(c), heads.kv * heads.key_dim
        count = c.whole(self.expert_count)
        drawn = min(count, self.num_drawn(c))
        return (
            Weight(w.QUERY, width, hidden, count, drawn),
            Weight(w.OUTPUT, hidden, width, count, drawn),
            Weight(w.ROUTER, count, hidden),
            Weight(w.BIAS, hidden),
            Weight(w.KEY, width, hidden),
            Weight(w.VALUE, width, hidden),
        )

    def routed(self, c: Config) -> Weights:
        """The experts, and one bias behind them all."""
        return (*super().routed(c), Weight(w.BIAS, self.hidden(c)))
