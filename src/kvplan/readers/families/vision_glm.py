"""The GLM models that see: the encoder ends in the text model's width, nothing stands between.

The cited files are those of transformers 5.24.0.
"""

from __future__ import annotations

from kvplan.readers.config import Config
from kvplan.readers.families.composite import Composite, flattened
from kvplan.readers.families.vision import EitherTies


class Glm4v(EitherTies):
    """GLM-4.1V, GLM-4.5V and GLM-OCR."""

    text_type = "glm4v_text"


class Glm46V(Composite):
    """The same parts under a config whose own word alone ties the head."""

    text_type = "glm4v_text"


class Glm5Next(Composite):
    """A file without a text section is the text section itself.

    models/glm5_next/configuration_glm5_next.py, __post_init__.
    """

    text_type = "glm5_next_text"

    def text_part(self, c: Config) -> Config:
        """The section, else the whole file."""
        if c.in_file("text_config"):
            return super().text_part(c)
        return flattened(c, self.text_type)
