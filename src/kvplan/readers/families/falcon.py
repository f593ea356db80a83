"""Falcon in its three forms: a KV head each, one for all, or one for a group.

The grouped form (``new_decoder_architecture``) broadcasts keys and values to the query heads before
they are kept, so transformers holds a copy for each (transformers 5.24.0,
models/falcon/modeling_falcon.py, FalconAttention._split_heads); an engine keeps the groups.
"""

from __future__ import annotations

from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import (
    NO_OPTIONS,
    Decoder,
    Description,
    Heads,
    Mixer,
    Options,
    Weights,
    attention_cache,
)


class Falcon(Decoder):
    """Layer norms, one key for every bias, an MLP without a gate."""

    norm = "layer"
    gated = False
    attention_bias = "bias"
    mlp_bias = "bias"
    named_head_dim = False
    tied_default = True

    def hidden(self, c: Config) -> int:
        """The older key of the width wins (models/falcon/configuration_falcon.py)."""
        return c.first_whole("n_embed", "hidden_size")

    def inner(self, c: Config) -> int:
        """Four times the width where the config has none."""
        return c.whole("ffn_hidden_size", 4 * self.hidden(c))

    def heads(self, c: Config) -> Heads:
        """Groups in the new architecture, else one KV head or one for each query."""
        usual = super().heads(c)
        if c.flag("new_decoder_architecture"):
            return usual._replace(kv=c.whole("num_kv_heads", usual.query))
        return usual._replace(kv=1 if c.flag("multi_query", True) else usual.query)

    def attention(self, c: Config, window: int | None = None) -> Mixer:
        """The groups, each kept as often as it has query heads."""
        heads = self.heads(c)
        copies = heads.query // heads.kv if c.flag("new_decoder_architecture") else 1
        cache = attention_cache(heads, window, copies=max(1, copies))
        return Mixer((cache,), self.attention_weights(c, heads))

    def block_norms(self, c: Config) -> Weights:
        """Two, or one before attention and MLP beside each other (FalconDecoderLayer)."""
        grouped = c.flag("new_decoder_architecture")
        parallel = c.flag("parallel_attn", True)
        count = c.whole("num_ln_in_parallel_attn", 2 if grouped else 1, least=0)
        return parts.norm(self.hidden(c), self.norm, 2 if not parallel or count == 2 else 1)


class RefinedWeb(Falcon):
    """Falcon under the type and the keys it was published with; ``RefinedWeb`` is the grouped form.

    tiiuae/falcon-40b and falcon-7b before Falcon was a part of transformers: configuration_RW.py.
    """

    grouped: bool = True

    def describe(self, c: Config, options: Options = NO_OPTIONS) -> Description:
        """The keys by their newer names."""
        heads = c.whole("n_head")
        renamed = c.with_values(
            num_hidden_layers=c.layers("n_layer"),
            num_attention_heads=heads,
            num_kv_heads=c.whole("n_head_kv", heads),
            new_decoder_architecture=self.grouped,
        )
        return super().describe(renamed, options)


class RefinedWebModel(RefinedWeb):
    """The form with one KV head for all, or one each."""

    grouped = False
