"""Mixtures of experts that see: MiniMax M3 and Step 3.7.

Cited files are those of transformers 5.24.0.
"""

from __future__ import annotations

from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Weights
from kvplan.readers.families.vision import EitherTies, projections
from kvplan.readers.families.vision_qwen import FlatText


class MiniMaxM3VL(EitherTies):
    """Patches are projected to the text's width, then squares of them joined and projected.

    models/minimax_m3_vl/modeling_minimax_m3_vl.py, MiniMaxM3VLMultiModalProjector.
    """

    text_classes = ("MiniMaxM3VLForCausalLM",)

    def joint(self, c: Config, text: Config) -> Weights:
        """Two layers each."""
        vision, out = c.section("vision_config"), text.whole("hidden_size")
        inner, joined = (
            c.whole("projector_hidden_size"),
            out * vision.whole("spatial_merge_size") ** 2,
        )
        return (
            *projections(vision.whole("hidden_size"), inner, out),
            *projections(joined, inner, out),
        )


class Step37(FlatText):
    """One matrix (models/step3p7/modeling_step3p7.py, Step3p7Model)."""

    def joint(self, c: Config, text: Config) -> Weights:
        """The tower's last convolution is four times as wide as its blocks."""
        vision = c.section("vision_config")
        width = vision.first_whole("width", "hidden_size")
        return parts.linear("", 4 * width, text.whole("hidden_size"), c.flag("projector_bias"))
