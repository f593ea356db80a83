"""Vision-language models whose code is published with their weights, not in transformers.

The cache is that of a text model that is known. Their encoders have shapes that the config only
names, so the parameters are not counted.
"""

from __future__ import annotations

from kvplan.readers.config import Config
from kvplan.readers.families.base import NO_OPTIONS, Description, Family, Options
from kvplan.readers.families.composite import described


class TextOfFile(Family):
    """The text model's keys are those of the whole file, read as those of ``text_type``."""

    text_type: str = "qwen2"

    def describe(self, c: Config, options: Options = NO_OPTIONS) -> Description:
        """The text model's cache."""
        return uncounted(described(Config(c.raw, self.text_type, c.path), options), c)


class Phi3Vision(TextOfFile):
    """modeling_phi3_v.py, published with microsoft/Phi-3.5-vision-instruct: Phi-3 behind CLIP."""

    text_type = "phi3"


class JanusRemote(Family):
    """modeling_vlm.py of deepseek-ai/Janus: a Llama in ``language_config``."""

    def describe(self, c: Config, options: Options = NO_OPTIONS) -> Description:
        """The language model's cache."""
        return uncounted(described(c.section("language_config", "llama"), options), c)


def uncounted(found: Description, c: Config) -> Description:
    """A description that says why its tensors are not all."""
    reason = f"the encoder of {c.model_type} is published code whose shape the config only names"
    return found._replace(uncounted=reason)
