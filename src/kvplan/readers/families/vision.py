"""Vision-language models: a text family, a vision tower and a projector."""

from __future__ import annotations

from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Weights
from kvplan.readers.families.composite import Composite


class Gemma3Vision(Composite):
    """SigLIP, average pooling, a norm and one projection."""

    text_type = "gemma3_text"

    def joint(self, c: Config, text: Config) -> Weights:
        """models/gemma3/modeling_gemma3.py, Gemma3MultiModalProjector."""
        width = c.section("vision_config").whole("hidden_size")
        return (*parts.norm(width), *parts.linear("", width, text.whole("hidden_size")))
