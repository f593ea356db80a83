"""Mistral's vision-language models: Pixtral, a merger of patches, two layers."""

from __future__ import annotations

from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Weights
from kvplan.readers.families.composite import Composite
from kvplan.readers.families.vision import projections
from kvplan.readers.families.vision_llava import feature_width


class Mistral3(Composite):
    """Mistral 3 (transformers 5.24.0, models/mistral3) and Mistral Large 4."""

    text_type = "mistral"

    def joint(self, c: Config, text: Config) -> Weights:
        """Mistral3MultiModalProjector: a norm, a square of patches to one, then two layers."""
        width, out = c.section("vision_config").whole("hidden_size"), text.whole("hidden_size")
        return (
            *parts.norm(width),
            *parts.linear("", width * c.whole("spatial_merge_size") ** 2, width),
            *projections(feature_width(c), out, out, bias=c.flag("multimodal_projector_bias")),
        )
