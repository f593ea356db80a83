"""Models that act: a vision-language model read by a second decoder that puts out movements."""

from __future__ import annotations

from kvplan.core import weights as w
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import NO_OPTIONS, Description, Family, Options
from kvplan.readers.families.composite import described
from kvplan.readers.families.vision import projections


class Pi0(Family):
    """PaliGemma without a head, and a Gemma of its depth that attends to the same cache.

    transformers 5.24.0, models/pi0/modeling_pi0.py, PI0ForConditionalGeneration.
    """

    def describe(self, c: Config, options: Options = NO_OPTIONS) -> Description:
        """The cache is that of the image and the words; the actions' tokens are not kept."""
        seen = described(c.section("vlm_config").with_values(tie_word_embeddings=True), options)
        section = c.section("dit_config").with_values(
            vocab_size=seen.vocab_size, tie_word_embeddings=True
        )
        acting = parts.as_role(described(section).tensors, w.PROJECTOR)
        width, action = section.whole("hidden_size"), c.whole("max_action_dim")
        joint = (
            *projections(action, width),
            *projections(c.whole("max_state_dim"), width),
            *projections(2 * width, width, width),
            *projections(width, action),
        )
        return seen._replace(tensors=(*seen.tensors, *acting, *parts.as_role(joint, w.PROJECTOR)))
