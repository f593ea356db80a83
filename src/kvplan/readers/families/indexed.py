"""Latent attention with an indexer that picks the tokens to attend to: DeepSeek V3.2 and after.

An indexer keeps one more key a token. Some models run it in a few layers alone and reuse what it
picked in the layers between. Files named here are transformers 5.24.0's, below ``models/``.
"""

from __future__ import annotations

from kvplan.core import weights as w
from kvplan.core.errors import BadFile
from kvplan.core.stack import Stack
from kvplan.core.weights import Weight
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Mixer, Weights, layer_kinds
from kvplan.readers.families.latent import Glm4MoeLite, Shape, every_sparse

OWN, REUSED = "full", "shared"
LETTERS = {"F": OWN, "S": REUSED}


class DeepseekV32(Glm4MoeLite):
    """An indexer in every layer, whatever ``layer_types`` says.

    deepseek_v32/modeling_deepseek_v32.py; its config class lets ``num_experts`` replace
    ``n_routed_experts``.
    """

    expert_keys: tuple[str, ...] = ("num_experts", "n_routed_experts")

    def mixers(self, c: Config) -> Stack[Mixer]:
        """Layers with an indexer of their own and layers that reuse an earlier one's choice."""
        kinds = self.indexers(c, self.depth(c))
        return Stack.named(
            kinds, {kind: self.indexed(c, kind == OWN) for kind in dict.fromkeys(kinds)}
        )

    def indexers(self, c: Config, count: int) -> list[str]:
        """Which layers run an indexer."""
        return [OWN] * count

    def indexed(self, c: Config, own: bool) -> Mixer:
        """Latent attention, with an indexer or without."""
        shape = self.shape(c)
        weights = self.latent_weights(c, shape)
        if not own:
            return Mixer((shape.cache(),), weights)
        cache = shape.cache(index_dim=self.index_width(c))
        return Mixer((cache,), weights + self.indexer(c, shape.query_rank))

    def index_width(self, c: Config) -> int:
        """Elements that a token leaves for the indexer."""
        return c.whole("index_head_dim")

    def indexer(self, c: Config, query_width: int) -> Weights:
        """Queries out of the query's rank, one key, its norm, and a weight for each head."""
        hidden, dim = self.hidden(c), c.whole("index_head_dim")
        heads = c.whole("index_n_heads")
        return (
            Weight(w.INDEXER, heads * dim, query_width),
            Weight(w.INDEXER, dim, hidden),
            Weight(w.INDEXER, heads, hidden),
            *parts.norm(dim, "layer"),
        )

    def leading_dense(self, c: Config) -> int:
        """``first_k_dense_replace``."""
        return c.whole("first_k_dense_replace", 0, least=0)


class AXK2(DeepseekV32):
    """Queries and output gate out of one projection, and norms behind a low-rank gate.

    axk2/modeling_axk2.py, AXK2Attention and AXK2DecoderLayer.
    """

    expert_keys = ("n_routed_experts",)

    def derive_networks(self, c: Config, count: int) -> list[str]:
        """axk2/configuration_axk2.py, __post_init__."""
        return every_sparse(c, count)

    def latent_weights(self, c: Config, shape: Shape) -> Weights:
        """``q_gate_proj`` reads the query's rank before and after its norm."""
        hidden, bias = self.hidden(c), self.says(c, self.attention_bias)
        rows = shape.heads * (shape.nope + shape.rope + shape.value)
        return (
            *parts.latent_query(
                hidden, shape.query_rank, rows, bias=bias, reads=2 * shape.query_rank
            ),
            *parts.latent_down(hidden, shape.rank, shape.rope, bias=bias),
            *parts.latent_up(shape.heads, shape.rank, shape.nope, shape.value),
            *parts.linear(w.OUTPUT, shape.heads * shape.value, hidden, bias),
        )

    def block_norms(self, c: Config) -> Weights:
        """The gate of the input norm; that of the other one stands before mixtures alone."""
        return super().block_norms(c) + self.norm_gate(c)

    def mixture(self, c: Config) -> Weights:
        """With the gate of the norm before it."""
        return super().mixture(c) + self.norm_gate(c)

    def norm_gate(self, c: Config) -> Weights:
        """AXK2GateMLP: down to ``gated_norm_rank`` and up again."""
        return parts.mlp(self.hidden(c), c.whole("gated_norm_rank"), gated=False)


class GlmMoeDsa(DeepseekV32):
    """Indexers in some layers: GLM-5.

    glm_moe_dsa/configuration_glm_moe_dsa.py, __post_init__: ``indexer_types``, else a pattern, else
    every ``index_topk_freq``-th layer from ``index_skip_topk_offset`` on and all before it.
    """

    def indexers(self, c: Config, count: int) -> list[str]:
        """As the file names them, by one of its keys."""
        if c.has("indexer_types"):
            return layer_kinds(c, count, key="indexer_types", known=(OWN, REUSED))
        return self.derive_indexers(c, count)

    def derive_indexers(self, c: Config, count: int) -> list[str]:
        """By the pattern or the frequency."""
        if c.is_list("index_topk_pattern"):
            return layer_kinds(c, count, key="index_topk_pattern", known=(OWN, REUSED))
        if c.has("index_topk_pattern"):
            return spelled(c.text("index_topk_pattern"), count)
        every = max(1, c.whole("index_topk_freq", 1, least=0))
        offset = c.whole("index_skip_topk_offset", 2, least=0)
        return [REUSED if max(place - offset + 1, 0) % every else OWN for place in range(count)]


class HYV4(GlmMoeDsa):
    """An output gate, attention sinks and hyper-connections: Hunyuan 4.

    hy_v4/modeling_hy_v4.py, HYV4Attention, HYV4HyperConnection and HYV4HyperHead.
    """

    def derive_indexers(self, c: Config, count: int) -> list[str]:
        """The first layer, and every fourth from the second on."""
        return [OWN if place == 0 or place % 4 == 1 else REUSED for place in range(count)]

    def leading_dense(self, c: Config) -> int:
        """One."""
        return 1

    def latent_weights(self, c: Config, shape: Shape) -> Weights:
        """With a gate as wide as the values, and a sink a head."""
        gate = Weight(w.QUERY, shape.heads * shape.value, self.hidden(c))
        return (*super().latent_weights(c, shape), gate, *parts.scalar(shape.heads))

    def block_norms(self, c: Config) -> Weights:
        """The norms, and a hyper-connection before the attention and before the network."""
        streams = c.whole("hc_mult")
        connection = parts.hyper_connection(self.hidden(c), streams, 2 * streams, 2)
        return super().block_norms(c) + parts.repeat(connection, 2)

    def ending(self, c: Config) -> Weights:
        """The streams come together before the final norm."""
        streams = c.whole("hc_mult")
        return parts.hyper_connection(self.hidden(c), streams, streams, 1) + super().ending(c)


def spelled(pattern: str, count: int) -> list[str]:
    """Indexers by a letter a layer: F runs its own, S shares.

    Raises:
        BadFile: another letter, or another number of them than layers.
    """
    if len(pattern) != count or not set(pattern) <= LETTERS.keys():
        raise BadFile(
            f"The config's index_topk_pattern is {pattern[:40]!r}: not {count} letters F or S."
        )
    return [LETTERS[letter] for letter in pattern]
