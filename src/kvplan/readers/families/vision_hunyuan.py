"""The HunYuan models that see.

The cited files are those of transformers 5.24.0.
"""

from __future__ import annotations

from kvplan.readers.config import Config
from kvplan.readers.families.composite import Composite, flattened
from kvplan.readers.families.vision import EitherTies


class HunYuanVL(EitherTies):
    """A merger that ends in the text model's width.

    models/hunyuan_vl/configuration_hunyuan_vl.py, __post_init__: a file without a text section has
    that section's keys at its own level, and the encoder's output is as wide as the text model.
    """

    text_type = "hunyuan_vl_text"

    def text_part(self, c: Config) -> Config:
        """The section, else the whole file."""
        if c.in_file("text_config"):
            return super().text_part(c)
        return flattened(c, self.text_type)

    def part(self, c: Config, key: str) -> Config:
        """The encoder, ending in the text model's width."""
        width = self.text_part(c).whole("hidden_size")
        return super().part(c, key).with_values(text_hidden_size=width)


class HYV4VL(Composite):
    """An encoder whose output is as wide as the text model."""

    text_type = "hy_v4_vl_text"
