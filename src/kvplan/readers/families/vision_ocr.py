"""Models that read documents: DeepSeek-OCR 2, Granite Docling, Granite 4 Vision, ERNIE 4.5 VL.

The cited files are those of transformers 5.24.0.
"""

from __future__ import annotations

from kvplan.core.errors import BadFile
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Weights
from kvplan.readers.families.composite import Composite
from kvplan.readers.families.vision import projections
from kvplan.readers.towers.blip import qformer


class DeepseekOcr2(Composite):
    """An encoder of two stages, one projection and a vector between views."""

    text_type = "deepseek_ocr2_text"

    def joint(self, c: Config, text: Config) -> Weights:
        """models/deepseek_ocr2/modeling_deepseek_ocr2.py, DeepseekOcr2Model."""
        width = self.part(c, "vision_config").section("encoder_config").whole("hidden_size")
        hidden = text.whole("hidden_size")
        return (*projections(width, hidden), *parts.scalar(hidden))


class Ernie45VL(Composite):
    """Squares of patches, then pairs of frames, each through two projections and a norm."""

    text_type = "ernie4_5_vl_moe_text"

    def joint(self, c: Config, text: Config) -> Weights:
        """models/ernie4_5_vl_moe/modeling_ernie4_5_vl_moe.py, …VariableResolutionResamplerModel."""
        vision = self.part(c, "vision_config")
        joined = vision.whole("hidden_size") * vision.whole("spatial_merge_size") ** 2
        hidden = text.whole("hidden_size")
        return (
            *projections(joined, joined, joined),
            *projections(joined * vision.whole("temporal_merge_size"), joined, joined),
            *parts.norm(joined, "layer", 2),
            *projections(joined, hidden),
            *parts.norm(hidden),
        )


class Granite4Vision(Composite):
    """Q-Formers over windows of the image: one for each text layer that is fed, four more."""

    text_type = "granite4_vision_text"

    def joint(self, c: Config, text: Config) -> Weights:
        """models/granite4_vision/modeling_granite4_vision.py, Granite4VisionModel."""
        fed = c.value("deepstack_layer_map")
        if not isinstance(fed, list):
            raise BadFile("The config has no deepstack_layer_map, and its class gives none.")
        hidden = text.whole("hidden_size")
        projector = parts.repeat(self.projector(c, hidden), len(fed) + 4)
        return projector + parts.scalar(hidden)

    def projector(self, c: Config, hidden: int) -> Weights:
        """Granite4VisionWindowQFormerDownsampler; the Q-Former has the image's width."""
        width = self.vision_width(c)
        queries = self.part(c, "qformer_config").with_values(hidden_size=width)
        query, window = self.rate(c)
        return (
            *qformer(queries, width, words=queries.flag("use_qformer_text_input")),
            *parts.norm(width, "layer"),
            *parts.scalar((query**2 + window**2) * width),
            *projections(width, hidden),
        )

    @staticmethod
    def rate(c: Config) -> tuple[int, int]:
        """Sides of the queries and of a window: ``4/8``."""
        sides = c.text("downsample_rate").split("/")
        if len(sides) != 2 or not all(side.isdecimal() and len(side) < 6 for side in sides):
            raise BadFile("The config's downsample_rate is not two numbers such as 4/8.")
        return int(sides[0]), int(sides[1])


class GraniteDocling(Composite):
    """An encoder that ends in the text model's width, and a router between its two routes."""

    text_type = "granite_docling_text"

    def joint(self, c: Config, text: Config) -> Weights:
        """GraniteDoclingDensityRouter, where it has a width."""
        if not c.has("density_router_hidden_size"):
            return ()
        width, inner = (
            self.vision_width(c),
            c.whole("density_router_hidden_size"),
        )
        norm = parts.norm(width, "layer")
        return (*projections(width, 1), *norm, *projections(width, inner, 1))
