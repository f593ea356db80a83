"""Molmo 2 and Ovis 2: models whose adapter is more than a projection.

Cited files are those of transformers 5.24.0.
"""

from __future__ import annotations

from kvplan.core import weights as w
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import NO_OPTIONS, Description, Options, Weights
from kvplan.readers.families.composite import Composite

# models/molmo2/configuration_molmo2.py, Molmo2AdapterConfig.__post_init__.
FEATURE_LAYERS = (24, 18)
MOST_FEATURES = 4096


class Molmo2(Composite):
    """Attention pools patches, a gated network projects them (models/molmo2)."""

    text_type = "molmo2_text"

    def tied(self, c: Config, text: Config) -> bool:
        """Never: the class ties nothing."""
        return False

    def part(self, c: Config, key: str) -> Config:
        """Older files have ``vit_config``, of which the layers above the last read are cut."""
        if key != "vision_config" or c.in_file(key) or not c.in_file("vit_config"):
            return super().part(c, key)
        section = Config(c.section("vit_config").raw, "molmo2_vision", "vit_config")
        depth = section.layers()
        read = [layer % depth for layer in feature_layers(c)] if depth else []
        return section.with_values(num_hidden_layers=max(read, default=-1) + 1)

    def joint(self, c: Config, text: Config) -> Weights:
        """Molmo2Adapter."""
        adapter = c.section("adapter_config")
        hidden, bias = adapter.whole("hidden_size"), adapter.flag("attention_bias")
        inner, mlp_bias = adapter.whole("intermediate_size"), adapter.flag("mlp_bias")
        pooling = parts.attention(
            hidden * len(feature_layers(c)),
            adapter.whole("num_attention_heads"),
            adapter.whole("num_key_value_heads"),
            adapter.whole("head_dim"),
            bias=bias,
            out=hidden,
        )
        return (
            *pooling,
            *parts.repeat(parts.linear("", hidden, inner, mlp_bias), 2),
            *parts.linear("", inner, adapter.whole("text_hidden_size")),
        )


def feature_layers(c: Config) -> list[int]:
    """The tower's layers that the adapter reads; ``vit_layers`` is the key's older name."""
    adapter = c.section("adapter_config")
    key = "vit_layers" if adapter.has("vit_layers") else "vision_feature_layer"
    return adapter.wholes(key, FEATURE_LAYERS, least=-MOST_FEATURES)


class Ovis2(Composite):
    """Patches become weights over a visual vocabulary with an embedding of its own.

    models/ovis2/modeling_ovis2.py: the head is as large as the enclosing config says.
    """

    text_type = "qwen2"

    def describe(self, c: Config, options: Options = NO_OPTIONS) -> Description:
        """The head has its own shape where it is not tied."""
        found = super().describe(c, options)
        if c.flag("tie_word_embeddings"):
            return found
        head = parts.linear(w.HEAD, c.whole("hidden_size"), c.whole("vocab_size"))
        return found._replace(tensors=found.tensors + head)

    def tied(self, c: Config, text: Config) -> bool:
        """The text model brings no head."""
        return True

    def joint(self, c: Config, text: Config) -> Weights:
        """The visual embedding table."""
        rows = c.section("vision_config").whole("vocab_size")
        return parts.embedding(rows, c.whole("hidden_size"))
