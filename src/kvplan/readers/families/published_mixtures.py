"""Mixtures that run from the code published beside their weights, with no class in transformers.

Their keys and modules are those of that code; a config that lacks a width leaves the parameters
uncounted, not the cache.
"""

from __future__ import annotations

from kvplan.core.errors import BadFile
from kvplan.core.stack import Stack
from kvplan.readers.config import Config
from kvplan.readers.families.base import (
    FULL,
    NO_OPTIONS,
    SLIDING,
    Description,
    Heads,
    Options,
    layer_flags,
)
from kvplan.readers.families.head_kinds import MiMoV2Flash
from kvplan.readers.families.mixtures import DENSE, SPARSE, Mixture


class Published(Mixture):
    """A mixture whose ``needed`` keys have no defaults anywhere."""

    needed: tuple[str, ...] = ("intermediate_size", "moe_intermediate_size")

    def describe(self, c: Config, options: Options = NO_OPTIONS) -> Description:
        """All of it, or the blocks alone where a needed key is absent."""
        missing = [key for key in self.needed if not c.has(key)]
        if not missing:
            return super().describe(c, options)
        mixers = self.mixers(c)
        return Description(
            blocks=Stack(tuple([mixer.caches for mixer in mixers.kinds]), mixers.order),
            tensors=(),
            max_context_tokens=self.max_context(c),
            vocab_size=self.vocab(c),
            hidden_size=self.hidden(c),
            uncounted=f"the config has no {', '.join(missing)}",
        )

    def network_kinds(self, c: Config, count: int) -> list[str]:
        """Sparse from ``first_k_dense_replace`` on, every ``moe_layer_freq``-th."""
        first = c.whole("first_k_dense_replace", 0, least=0)
        step = c.whole("moe_layer_freq", 1)
        return [SPARSE if place >= first and not place % step else DENSE for place in range(count)]


class DeepseekMoe(Published):
    """DeepSeek MoE 16B (modeling_deepseek.py): dense where it names no routed experts."""

    needed = ("intermediate_size",)
    expert_count = "n_routed_experts"
    shared_count = "n_shared_experts"

    def network_kinds(self, c: Config, count: int) -> list[str]:
        """All dense without experts."""
        if not c.has("n_routed_experts"):
            return [DENSE] * count
        return super().network_kinds(c, count)


class BailingMoe(Published):
    """Ling and Ring (modeling_bailing_moe.py, modeling_bailing_moe_v2.py)."""

    attention_bias = "use_qkv_bias"
    output_bias = "use_bias"
    needed = ("intermediate_size", "moe_intermediate_size", "num_shared_experts")
    shared_count = "num_shared_experts"

    def query_norm(self, c: Config) -> str:
        """A norm of each head's queries and keys in the second version."""
        return "head" if c.flag("use_qk_norm") else ""


class MiMoV2(Published, MiMoV2Flash):
    """MiMo V2.5: the V2 Flash of transformers with ``swa_`` keys and a flag for each layer.

    1 in ``hybrid_layer_pattern`` is a window, in ``moe_layer_freq`` experts.
    """

    expert_count = "n_routed_experts"

    def derive(self, c: Config, count: int) -> list[str]:
        """As the flags say."""
        if not c.has("hybrid_layer_pattern"):
            raise BadFile(
                "The config has no hybrid_layer_pattern, which says which layers have a window.",
                "Add the key with a 0 or 1 for each layer, or pass it with --set.",
            )
        flags = layer_flags(c, "hybrid_layer_pattern", count)
        return [SLIDING if flag else FULL for flag in flags]

    def network_kinds(self, c: Config, count: int) -> list[str]:
        """As the flags say, else one dense block first."""
        if not c.has("moe_layer_freq"):
            return self.derive_networks(c, count)
        return [SPARSE if flag else DENSE for flag in layer_flags(c, "moe_layer_freq", count)]

    def sliding_heads(self, c: Config) -> Heads:
        """Each number under its own key, else that of the full layers."""
        full = self.heads(c)
        return Heads(
            c.whole("swa_num_attention_heads", full.query),
            c.whole("swa_num_key_value_heads", full.kv),
            c.whole("swa_head_dim", full.key_dim),
            c.whole("swa_v_head_dim", full.value_dim),
        )
