"""Mistral's vision-language models: Pixtral, a merger of patches, two layers."""

from __future__ import annotations

from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Weights
from kvplan.readers.families.composite import Composite
from kvplan.readers.families.vision_llava import num_feature_layers


class Mistral3(Composite):
    """transformers 5.24.0, models/mistral3/modeling_mistral3.py, Mistral3MultiModalProjector."""

    text_type = "mistral"

    def joint(self, c: Config, text: Config) -> Weights:
        """A norm, a square of patches to one, then two layers."""
        width, out = c.section("vision_config").whole("hidden_size"), text.whole("hidden_size")
        bias = c.flag("multimodal_projector_bias")
        return (
            *parts.norm(width),
            *parts.linear("", width * c.whole("spatial_merge_size") ** 2, width),
            *parts.linear("", width * num_feature_layers(c), out, bias),
            *parts.linear("", out, out, bias),
        )
