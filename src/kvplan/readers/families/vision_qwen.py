"""Qwen's vision-language models: the tower brings its own merger, so nothing stands between."""

from __future__ import annotations

from kvplan.readers.config import Config
from kvplan.readers.families.composite import Composite, flattened
from kvplan.readers.families.vision import EitherTies


class Qwen3VL(Composite):
    """A text model and a tower that ends in its width."""


class Qwen35VL(Composite):
    """Types whose text model has a class of its own that takes the whole config too."""

    text_classes = ("Qwen3_5ForCausalLM", "Qwen3_5MoeForCausalLM", "Qwen4ExpForCausalLM")


class FlatText(Composite):
    """Older files have the text model's keys beside the tower's section."""

    lifts_text = True

    def text_part(self, c: Config) -> Config:
        """The text section, or the file where it has none."""
        section = super().text_part(c)
        return section if c.in_file(self.text) else flattened(c, section.model_type)


class Qwen2VL(FlatText, EitherTies):
    """Qwen 2 and 2.5 (transformers 5.24.0, models/qwen2_vl/configuration_qwen2_vl.py)."""
