"""Vision-language models whose image features reach the text model through a small projector.

The cited files are those of transformers 5.24.0.
"""

from __future__ import annotations

from itertools import pairwise

from kvplan.core.errors import BadFile
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Weights
from kvplan.readers.families.composite import Composite
from kvplan.readers.towers import sam


def projections(*widths: int, bias: bool = True) -> Weights:
    """Linear maps in a row, from each width to the next."""
    found: Weights = ()
    for cols, rows in pairwise(widths):
        found += parts.linear("", cols, rows, bias)
    return found


class EitherTies(Composite):
    """A head that is tied where either the enclosing config or the text section says so.

    Files from before version 5 have ``tie_word_embeddings`` in the text section (__post_init__).
    """

    def tied(self, c: Config, text: Config) -> bool:
        """Either of the two."""
        return c.flag("tie_word_embeddings") or text.flag("tie_word_embeddings")


class AyaVision(Composite):
    """Squares of patches through a gated projection."""

    text_type = "cohere2"

    def joint(self, c: Config, text: Config) -> Weights:
        """models/aya_vision/modeling_aya_vision.py, AyaVisionMultiModalProjector."""
        joined = self.joined_width(c)
        return (*parts.norm(joined, "layer"), *self.gated(c, text, text.whole("hidden_size")))

    def joined_width(self, c: Config) -> int:
        """A square of ``downsample_factor`` patches as one vector."""
        return self.vision_width(c) * c.whole("downsample_factor") ** 2

    def gated(self, c: Config, text: Config, default: int) -> Weights:
        """Up to ``alignment_intermediate_size``, half of which gates the other half."""
        inner = c.whole("alignment_intermediate_size", default)
        return (
            *projections(self.joined_width(c), inner),
            *projections(inner // 2, text.whole("hidden_size")),
        )


class Cohere2Vision(AyaVision):
    """The same without the norm (models/cohere2_vision/modeling_cohere2_vision.py)."""

    def joint(self, c: Config, text: Config) -> Weights:
        """Cohere2VisionMultiModalProjector."""
        return self.gated(c, text, 36864)


class DeepseekVL(Composite):
    """SigLIP and a projection of two layers."""

    def joint(self, c: Config, text: Config) -> Weights:
        """models/deepseek_vl/modeling_deepseek_vl.py, DeepseekVLAligner."""
        width, hidden = self.vision_width(c), text.whole("hidden_size")
        return projections(width, hidden, hidden)


class FastVlm(EitherTies):
    """A timm encoder, whose shape its name alone gives."""

    text_type = "qwen2"

    def joint(self, c: Config, text: Config) -> Weights:
        """models/fast_vlm/modeling_fast_vlm.py, FastVlmMultiModalProjector."""
        width, hidden = self.vision_width(c), text.whole("hidden_size")
        return projections(width, hidden, hidden, bias=c.flag("multimodal_projector_bias"))


class InternVL(Composite):
    """Squares of patches, a norm, two projections."""

    text_type = "qwen2"

    def joint(self, c: Config, text: Config) -> Weights:
        """models/internvl/modeling_internvl.py, InternVLMultiModalProjector."""
        side = int(1 / ratio) if (ratio := c.number("downsample_ratio")) > 0 else 0
        joined = self.vision_width(c) * side**2
        hidden = text.whole("hidden_size")
        return (*parts.norm(joined, "layer"), *projections(joined, hidden, hidden))


class Lfm2VL(Composite):
    """SigLIP 2, squares of patches, an optional norm, two projections."""

    text_type = "lfm2"

    def tied(self, c: Config, text: Config) -> bool:
        """``tie_embedding`` is its older name (models/lfm2_vl/configuration_lfm2_vl.py)."""
        return c.flag("tie_embedding", super().tied(c, text))

    def joint(self, c: Config, text: Config) -> Weights:
        """models/lfm2_vl/modeling_lfm2_vl.py, Lfm2VlMultiModalProjector."""
        width = self.vision_width(c)
        joined = width * c.whole("downsample_factor") ** 2
        norm = parts.norm(joined, "layer") if c.flag("projector_use_layernorm") else ()
        inner = c.whole("projector_hidden_size")
        bias = c.flag("projector_bias")
        return norm + projections(joined, inner, text.whole("hidden_size"), bias=bias)


class LightOnOcr(Composite):
    """Pixtral, a norm, a merger of squares, two projections."""

    text_type = "qwen3"

    def joint(self, c: Config, text: Config) -> Weights:
        """models/lighton_ocr/modeling_lighton_ocr.py, LightOnOcrMultiModalProjector."""
        width, hidden = self.vision_width(c), text.whole("hidden_size")
        joined = width * c.whole("spatial_merge_size") ** 2
        return (*parts.norm(width), *projections(joined, width, hidden, hidden, bias=False))


class HyperClovaXVision(Composite):
    """Qwen 2.5's encoder and one projection."""

    text_type = "hyperclovax"
    older_types = (("qwen2_5_vl", "qwen2_5_vl_vision"),)

    def joint(self, c: Config, text: Config) -> Weights:
        """models/hyperclovax_vision_v2/modeling_hyperclovax_vision_v2.py."""
        width = self.part(c, "vision_config").whole("out_hidden_size")
        return projections(width, text.whole("hidden_size"))


class Exaone45(Composite):
    """An encoder that ends in the text model's width."""

    text_type = "exaone4"
    older_types = (("exaone4_5_text", "exaone4"),)


class Cosmos3Omni(Composite):
    """The reasoning half of Cosmos 3: Qwen 3 VL."""

    text_type = "qwen3_vl_text"

    def part(self, c: Config, key: str) -> Config:
        """The encoder's type is always the same (models/cosmos3_omni/configuration_….py)."""
        section = super().part(c, key)
        return Config(section.raw, "qwen3_vl_vision", section.path)


class Cosmos3Edge(Composite):
    """SigLIP 2 without its head, squares of patches, a norm and two projections."""

    text_type = "cosmos3_edge_text"

    def text_section(self, c: Config) -> Config:
        """The head is never tied (modeling_cosmos3_edge.py, _tied_weights_keys is empty)."""
        return self.text_part(c).with_values(tie_word_embeddings=False)

    def joint(self, c: Config, text: Config) -> Weights:
        """models/cosmos3_edge/modeling_cosmos3_edge.py, Cosmos3EdgePatchMerger."""
        vision = self.part(c, "vision_config")
        width = vision.whole("hidden_size")
        joined = width * vision.whole("spatial_merge_size") ** 2
        inner = c.whole("projector_hidden_size")
        return (*parts.norm(width, "layer"), *projections(joined, inner, text.whole("hidden_size")))


class KimiK25(Composite):
    """MoonViT, a norm of single patches, two projections of joined ones."""

    text_type = "deepseek_v3"
    older_types = (("kimi_k2", "deepseek_v3"),)

    def joint(self, c: Config, text: Config) -> Weights:
        """models/kimi_k25/modeling_kimi_k25.py, Kimi_K25MultimodalProjection."""
        vision = self.part(c, "vision_config")
        joined = vision.whole("hidden_size")
        for side in vision.wholes("merge_kernel_size", least=1)[:2]:
            joined *= side
        norm = parts.norm(c.whole("projection_hidden_size"), "layer")
        return (*norm, *projections(joined, joined, text.whole("hidden_size")))


class GotOcr2(Composite):
    """SAM's encoder, two convolutions that halve the sides, one projection."""

    text_type = "qwen2"

    def joint(self, c: Config, text: Config) -> Weights:
        """models/got_ocr2/modeling_got_ocr2.py, GotOcr2MultiModalProjector."""
        channels = self.part(c, "vision_config").whole("output_channels")
        hidden = text.whole("hidden_size")
        return (
            *parts.convolution("", channels, channels * 2, 3, 3, bias=False),
            *parts.convolution("", channels * 2, hidden, 3, 3, bias=False),
            *projections(hidden, hidden),
        )


class DeepseekVLHybrid(Composite):
    """SigLIP beside SAM's encoder for a larger image, each projected to half of the width."""

    towers = ("vision_config", "high_res_vision_config")

    def joint(self, c: Config, text: Config) -> Weights:
        """models/deepseek_vl_hybrid/modeling_deepseek_vl_hybrid.py."""
        high = self.part(c, "high_res_vision_config")
        channels, hidden = high.whole("output_channels"), text.whole("hidden_size")
        half = hidden // 2
        return (
            *sam.neck(high.whole("hidden_size"), channels),
            *parts.convolution("", channels, channels * 2, 3, 3, bias=False),
            *parts.convolution("", channels * 2, channels * 4, 3, 3, bias=False),
            *parts.scalar(1),
            *projections(self.vision_width(c), half),
            *projections(channels * 4, half),
            *projections(hidden, hidden),
        )


class Aria(Composite):
    """Learned queries read the patches, then a network without biases."""

    text_type = "aria_text"
    text_classes = ("AriaTextForCausalLM",)

    def joint(self, c: Config, text: Config) -> Weights:
        """models/aria/modeling_aria.py, AriaProjector: an attention behind three projections."""
        width, hidden = self.vision_width(c), text.whole("hidden_size")
        return (
            *parts.scalar(self.queries(c) * width),
            *parts.linear("", width, width, count=3),
            *parts.attention(width, 1, 1, width, bias=True),
            *projections(width, width),
            *parts.norm(width, "layer", 3),
            *projections(width, hidden, hidden, bias=False),
        )

    @staticmethod
    def queries(c: Config) -> int:
        """The most queries for any number of patches (AriaConfig, __post_init__)."""
        sizes = c.value("projector_patch_to_query_dict", {"1225": 128, "4900": 256})
        counts = list(sizes.values()) if isinstance(sizes, dict) else []
        if not counts or not all(type(count) is int and count > 0 for count in counts):
            raise BadFile("The config's projector_patch_to_query_dict is not a map to numbers.")
        return int(max(counts))


class CohereCompass(Composite):
    """An encoder like Qwen 3's, which ends in the text model's width."""

    text_type = "cohere_compass_text"
    text_classes = ("CohereCompassForCausalLM",)


class Lfm3VL(Composite):
    """Squares of normalised patches through two projections."""

    text_type = "lfm3"

    def joint(self, c: Config, text: Config) -> Weights:
        """models/lfm3_vl/modeling_lfm3_vl.py, Lfm3VlMultiModalProjector."""
        vision = self.part(c, "vision_config")
        width, inner = vision.whole("hidden_size"), c.whole("projector_hidden_size")
        joined = width * vision.whole("spatial_merge_size") ** 2
        bias = c.flag("projector_bias")
        norm = parts.norm(width, "layer")
        return norm + projections(joined, inner, text.whole("hidden_size"), bias=bias)
