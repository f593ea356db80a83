"""Mixtures whose layers differ in heads: MiMo V2, Step 3.5, Laguna.

Files cited are those of transformers 5.24.0, below ``models/``.
"""

from __future__ import annotations

from kvplan.core import weights as w
from kvplan.core.stack import Stack
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import (
    FULL,
    SLIDING,
    Heads,
    Mixer,
    Weights,
    attention_cache,
    layer_flags,
)
from kvplan.readers.families.mixtures import DENSE, SPARSE, Named


class MiMoV2Flash(Named):
    """Values narrower than keys; sliding layers have twice the KV heads, and sinks."""

    output_bias = False
    expert_count = "n_routed_experts"

    def attention(self, c: Config, window: int | None = None) -> Mixer:
        """The full layers' attention, or the sliding ones' with sinks."""
        if window is None:
            return super().attention(c)
        heads = self.sliding_heads(c)
        weights = self.attention_weights(c, heads) + parts.scalar(heads.query)
        return Mixer((attention_cache(heads, window),), weights)

    def heads(self, c: Config) -> Heads:
        """The full layers' heads."""
        return super().heads(c)._replace(value_dim=c.whole("v_head_dim"))

    def sliding_heads(self, c: Config) -> Heads:
        """The sliding layers' heads (mimo_v2_flash/modeling_mimo_v2_flash.py)."""
        heads = self.heads(c)
        return heads._replace(kv=2 * heads.kv)

    def window(self, c: Config) -> int | None:
        """The older key does not count the token itself (configuration_mimo_v2_flash.py)."""
        if c.has("sliding_window_size"):
            return c.whole("sliding_window_size") + 1
        return super().window(c)

    def derive(self, c: Config, count: int) -> list[str]:
        """The first layer and every sixth are full."""
        return [SLIDING if place and (place + 1) % 6 else FULL for place in range(count)]


class HeadGated(Named):
    """A gate on the attention's output: one element a head, or as wide as the queries."""

    qk_norm = "head"

    def attention_weights(self, c: Config, heads: Heads) -> Weights:
        """Projections and the gate's, which has no bias."""
        gating = c.value("gating", True)
        per_head = gating is True or gating == "per-head"
        width = heads.query * (1 if per_head else heads.key_dim)
        gate = parts.linear(w.QUERY, self.hidden(c), width)
        return super().attention_weights(c, heads) + gate


class Laguna(HeadGated):
    """A number of query heads for each layer; all layers full where the file names none."""

    shared_width = "shared_expert_intermediate_size"
    router_bias = True

    def mixers(self, c: Config) -> Stack[Mixer]:
        """One mixer for each pair of a kind and a number of query heads."""
        count = self.depth(c)
        queries = [c.whole("num_attention_heads")] * count
        if c.has("num_attention_heads_per_layer"):
            queries = layer_flags(c, "num_attention_heads_per_layer", count)
        pairs = list(zip(self.kinds(c, count), queries, strict=True))
        names = [f"{kind} {query}" for kind, query in pairs]
        found = {
            f"{kind} {query}": self.attention_of(c, kind, query)
            for kind, query in dict.fromkeys(pairs)
        }
        return Stack.named(names, found)

    def attention_of(self, c: Config, kind: str, query: int) -> Mixer:
        """The attention of one kind with so many query heads."""
        heads = self.heads(c)._replace(query=query)
        cache = attention_cache(heads, self.window(c) if kind == SLIDING else None)
        return Mixer((cache,), self.attention_weights(c, heads))

    def derive(self, c: Config, count: int) -> list[str]:
        """A window alone makes no layer a sliding one (laguna/configuration_laguna.py)."""
        return [FULL] * count


class Step35(HeadGated):
    """Sliding layers have their own number of query heads; lists may count the extra layers.

    step3p7/configuration_step3p7.py, Step3p7TextConfig.__post_init__: a list that is longer by
    ``num_nextn_predict_layers`` also names layers that predict further tokens, which are not built.
    """

    dense = 3
    mlp_bias = "mlp_bias"
    expert_count = "n_routed_experts"
    shared_width = "share_expert_dim"

    def attention(self, c: Config, window: int | None = None) -> Mixer:
        """The full layers' attention, or the sliding ones' with their query heads."""
        if window is None:
            return super().attention(c)
        heads = self.heads(c)._replace(query=self.sliding_query(c))
        return Mixer((attention_cache(heads, window),), self.attention_weights(c, heads))

    def sliding_query(self, c: Config) -> int:
        """Query heads of a sliding layer, in the published file inside another section."""
        other = c.section("attention_other_setting")
        usual = other.whole("num_attention_heads", c.whole("num_attention_heads"))
        return c.whole("num_sliding_attention_heads", usual)

    def kinds(self, c: Config, count: int) -> list[str]:
        """The built layers' kinds, all full where none are named."""
        return super().kinds(self.without_extra(c, "layer_types", count), count)

    def derive(self, c: Config, count: int) -> list[str]:
        """A window alone makes no layer a sliding one."""
        return [FULL] * count

    def network_kinds(self, c: Config, count: int) -> list[str]:
        """The built layers' networks."""
        return super().network_kinds(self.without_extra(c, "mlp_layer_types", count), count)

    def derive_networks(self, c: Config, count: int) -> list[str]:
        """The places in ``moe_layers_enum``, a list or a text with commas; else all but three."""
        if not c.has("moe_layers_enum"):
            return super().derive_networks(c, count)
        sparse = self.sparse_places(c)
        return [SPARSE if str(place) in sparse else DENSE for place in range(count)]

    def sparse_places(self, c: Config) -> set[str]:
        """The places as texts."""
        if c.is_list("moe_layers_enum"):
            return set(map(str, c.wholes("moe_layers_enum")))
        return {place.strip() for place in c.text("moe_layers_enum").split(",")}

    def without_extra(self, c: Config, key: str, count: int) -> Config:
        """The config with a list cut to the layers that are built."""
        extra = c.whole("num_nextn_predict_layers", 0, least=0)
        if not extra or not c.is_list(key):
            return c
        kinds = c.words(key)
        return c.with_values(**{key: kinds[:count]}) if len(kinds) == count + extra else c
