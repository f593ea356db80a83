"""Qwen's vision-language models: the tower brings its own merger, so nothing stands between."""

from __future__ import annotations

from kvplan.readers.config import Config
from kvplan.readers.families.composite import Composite


class Qwen3VL(Composite):
    """A text model and a tower that ends in its width."""


class Qwen35VL(Composite):
    """The type whose text model has a class of its own under the same name."""

    text_classes = ("Qwen3_5ForCausalLM", "Qwen3_5MoeForCausalLM", "Qwen4ExpForCausalLM")


class Qwen2VL(Composite):
    """Either config may tie the head; older files have the text model's keys beside the tower's.

    transformers 5.24.0, models/qwen2_vl/configuration_qwen2_vl.py, Qwen2VLConfig.__post_init__.
    """

    def text_part(self, c: Config) -> Config:
        """The text section, or the whole file where it has none."""
        if c.in_file(self.text):
            return super().text_part(c)
        section = super().text_part(c)
        return Config(c.raw, section.model_type, c.path)

    def tied(self, c: Config, text: Config) -> bool:
        """By the word of one of them."""
        return c.flag("tie_word_embeddings") or text.flag("tie_word_embeddings")
