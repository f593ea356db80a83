"""Falcon in its three forms: a KV head each, one for all, or one for a group.

The grouped form (``new_decoder_architecture``) broadcasts keys and values to the query heads before
they are kept, so transformers holds a copy for each (transformers 5.24.0,
models/falcon/modeling_falcon.py, FalconAttention._split_heads); an engine keeps the groups.
"""

from __future__ import annotations

from typing import ClassVar

from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Decoder, Heads, Mixer, Weights, attention_cache
from kvplan.readers.families.remote_code import Names, Renamed


class Falcon(Decoder):
    """Layer norms, one key for every bias, an MLP without a gate.

    ``groups`` is what a config that does not say so is: of the new architecture or not.
    """

    norm = "layer"
    gated = False
    attention_bias = "bias"
    mlp_bias = "bias"
    named_head_dim = False
    tied_default = True
    groups: bool = False

    def grouped(self, c: Config) -> bool:
        """Whether a group of query heads has a KV head."""
        return c.flag("new_decoder_architecture", self.groups)

    def hidden(self, c: Config) -> int:
        """The older key of the width wins (models/falcon/configuration_falcon.py)."""
        return c.first_whole("n_embed", "hidden_size")

    def inner(self, c: Config) -> int:
        """Four times the width where the config has none."""
        return c.whole("ffn_hidden_size", 4 * self.hidden(c))

    def heads(self, c: Config) -> Heads:
        """Groups in the new architecture, else one KV head or one for each query."""
        usual = super().heads(c)
        if self.grouped(c):
            return usual._replace(kv=c.whole("num_kv_heads", usual.query))
        return usual._replace(kv=1 if c.flag("multi_query", True) else usual.query)

    def attention(self, c: Config, window: int | None = None) -> Mixer:
        """The groups, each kept as often as it has query heads."""
        heads = self.heads(c)
        copies = heads.query // heads.kv if self.grouped(c) else 1
        cache = attention_cache(heads, window, copies=max(1, copies))
        return Mixer((cache,), self.attention_weights(c, heads))

    def block_norms(self, c: Config) -> Weights:
        """Two, or one before attention and MLP beside each other (FalconDecoderLayer)."""
        parallel = c.flag("parallel_attn", True)
        count = c.whole("num_ln_in_parallel_attn", 2 if self.grouped(c) else 1, least=0)
        return parts.norm(self.hidden(c), self.norm, 2 if not parallel or count == 2 else 1)


class RefinedWebModel(Renamed, Falcon):
    """Falcon 7B under the type and the keys it was published with (configuration_RW.py)."""

    names: ClassVar[Names] = {
        "num_hidden_layers": "n_layer",
        "num_attention_heads": "n_head",
        "num_kv_heads": "n_head_kv",
    }


class RefinedWeb(RefinedWebModel):
    """Falcon 40B likewise: the grouped form."""

    groups = True
