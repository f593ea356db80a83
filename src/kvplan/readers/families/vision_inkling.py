"""The Inkling models that see and hear.

The cited files are those of transformers 5.24.0.
"""

from __future__ import annotations

from kvplan.readers.config import Config
from kvplan.readers.families.composite import Composite


class InklingMM(Composite):
    """Encoders that end in the text model's width (models/inkling/configuration_inkling.py)."""

    text_type = "inkling_text"
    text_classes: tuple[str, ...] = ("InklingForCausalLM",)
    towers: tuple[str, ...] = ("vision_config", "audio_config")
    own_head = True

    def part(self, c: Config, key: str) -> Config:
        """An encoder, ending in the text model's width."""
        width = self.text_part(c).whole("hidden_size")
        return super().part(c, key).with_values(text_hidden_size=width)


class Inkling2MM(Composite):
    """An encoder whose output has a width of its own in the file."""

    text_type = "inkling2_text"
    text_classes: tuple[str, ...] = ("Inkling2ForCausalLM",)
    own_head = True


class Inkling2LoopMM(Inkling2MM):
    """The same before a text model with loops."""

    text_type = "inkling2_loop_text"
    text_classes = ("Inkling2LoopForCausalLM",)
