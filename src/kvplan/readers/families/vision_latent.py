"""Encoders in front of latent attention: dots 3 note and the first Kimi with vision."""

from __future__ import annotations

from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import NO_OPTIONS, Description, Options, Weights
from kvplan.readers.families.composite import Composite, described
from kvplan.readers.families.vision import projections


class Dots3NoteOmni(Composite):
    """Vision and audio; the encoders project to the text model's width themselves.

    transformers 5.24.0, models/dots3_note/configuration_dots3_note.py: without a ``text_config``
    the text model's keys are those of the whole file.
    """

    text_type = "dots3_note_text"
    towers = ("vision_config", "audio_config")
    text_classes = ("Dots3NoteForCausalLM",)

    def text_part(self, c: Config) -> Config:
        """The section, or the file itself."""
        if c.has(self.text):
            return super().text_part(c)
        return Config(c.raw, self.text_type, c.path)


class KimiVL(Composite):
    """MoonViT, a norm of single patches, two layers over a square of them.

    modeling_kimi_vl.py, published with moonshotai/Kimi-VL-A3B-Instruct: KimiVLMultiModalProjector.
    """

    text_type = "deepseek_v3"

    def describe(self, c: Config, options: Options = NO_OPTIONS) -> Description:
        """No class gives a vision model where the config has none: then it is left out."""
        if c.names_section("vision_config"):
            return super().describe(c, options)
        return described(self.text_part(c), options)._replace(left_out="vision_config")

    def joint(self, c: Config, text: Config) -> Weights:
        """The norm is before the patches are joined."""
        vision = self.part(c, "vision_config")
        width = joined = vision.whole("hidden_size")
        for side in vision.wholes("merge_kernel_size", [2, 2], least=1)[:2]:
            joined *= side
        norm = parts.norm(width, "layer")
        return (*norm, *projections(joined, joined, text.whole("hidden_size")))
