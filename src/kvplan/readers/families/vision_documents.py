"""Models that read documents: PaddleOCR-VL, Unlimited OCR, MiniCPM OCR and MiniCPM-V.

Cited files are those of transformers 5.24.0.
"""

from __future__ import annotations

from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Weights
from kvplan.readers.families.composite import Composite
from kvplan.readers.families.vision import projections
from kvplan.readers.families.vision_qwen import Qwen2VL


class PaddleOcr(Qwen2VL):
    """A square of patches is normed, joined and projected (models/paddleocr_vl)."""

    text_type = "paddleocr_vl_text"

    def joint(self, c: Config, text: Config) -> Weights:
        """PaddleOCRProjector."""
        vision = c.section("vision_config")
        width = vision.whole("hidden_size")
        joined = width * vision.whole("spatial_merge_size") ** 2
        return (
            *parts.norm(width, "layer"),
            *projections(joined, joined, text.whole("hidden_size")),
        )


class UnlimitedOcr(Composite):
    """SAM's and CLIP's features side by side, one projection, two vectors between views."""

    text_type = "unlimited_ocr_text"

    def text_part(self, c: Config) -> Config:
        """Older files call the section ``language_config`` and have its window beside it."""
        section = super().text_part(c)
        if c.in_file(self.text) or not c.in_file("language_config"):
            return section
        older = Config(c.section("language_config").raw, section.model_type, "language_config")
        if not c.has("sliding_window"):
            return older
        return older.with_values(sliding_window=c.whole("sliding_window"))

    def joint(self, c: Config, text: Config) -> Weights:
        """models/unlimited_ocr/modeling_unlimited_ocr.py, UnlimitedOcrModel."""
        vision, out = c.section("vision_config"), text.whole("hidden_size")
        width = vision.section("encoder_config").whole("hidden_size")
        channels = vision.section("sam_config").wholes("downsample_channels", least=1)
        return (*projections(sum(channels[-1:]) + width, out), *parts.scalar(out, 2))


class MiniCpmOcr(Composite):
    """Squares of four patches are joined ``merger_times`` times (models/minicpmv4_6, …)."""

    text_type = "qwen3_5_text"

    def joint(self, c: Config, text: Config) -> Weights:
        """MiniCPMOcrMerger."""
        width = c.section("vision_config").whole("hidden_size")
        joined = 4 * width
        norm = parts.norm(joined, "layer")
        again = (*norm, *projections(joined, joined, width))
        return (
            *parts.repeat(again, c.whole("merger_times") - 1),
            *norm,
            *projections(joined, joined, text.whole("hidden_size")),
        )
