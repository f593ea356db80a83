"""Vision-language models whose code is published with their weights, not in transformers.

The cache is that of a text model that is known. Where the config only names the shape of an encoder
and the published code does not fix it, the parameters are not counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from kvplan.core import weights as w
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import NO_OPTIONS, Description, Family, Options, Weights
from kvplan.readers.families.composite import described
from kvplan.readers.families.full import Phi3
from kvplan.readers.towers.clip import clip


class TextOfFile(Family):
    """The text model's keys are those of the whole file, read as those of ``text_type``."""

    text_type: str = "qwen2"

    def describe(self, c: Config, options: Options = NO_OPTIONS) -> Description:
        """The text model's cache."""
        return uncounted(described(Config(c.raw, self.text_type, c.path), options), c)


class DotsVlm(TextOfFile):
    """dots.vlm1: DeepSeek V3 with an encoder in front (SGLang, models/dots_vlm.py)."""

    text_type = "deepseek_v3"


class Phi3Vision(Phi3):
    """Phi 3 with CLIP's large transformer for images, whose shape its code fixes.

    microsoft/Phi-3-vision-128k-instruct, image_embedding_phi3_v.py: four patches are read together,
    and a separator of their width stands after each row and each image.
    """

    clip: ClassVar[Mapping[str, int]] = {
        "hidden_size": 1024,
        "intermediate_size": 4096,
        "num_hidden_layers": 24,
        "image_size": 336,
        "patch_size": 14,
        "num_channels": 3,
    }

    def embeddings(self, c: Config) -> Weights:
        """Tokens, the tower, the separators, and two projections to the model's width."""
        hidden, joined = self.hidden(c), 4 * self.clip["hidden_size"]
        projector = (
            *parts.scalar(joined, 2),
            *parts.linear("", joined, hidden, bias=True),
            *parts.linear("", hidden, hidden, bias=True),
        )
        tower = clip(Config(self.clip, "clip_vision_model"))
        seen = parts.as_role(tower, w.TOWER) + parts.as_role(projector, w.PROJECTOR)
        return super().embeddings(c) + seen


class JanusRemote(Family):
    """modeling_vlm.py of deepseek-ai/Janus: a Llama in ``language_config``."""

    def describe(self, c: Config, options: Options = NO_OPTIONS) -> Description:
        """The language model's cache."""
        return uncounted(described(c.section("language_config", "llama"), options), c)


def uncounted(found: Description, c: Config) -> Description:
    """A description that says why its tensors are not all."""
    reason = f"the encoder of {c.model_type} is published code whose shape the config only names"
    return found._replace(uncounted=reason)
