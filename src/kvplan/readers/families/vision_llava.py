"""LLaVA and its kin: a tower, a projector of two layers, a text model.

Cited files are those of transformers 5.24.0.
"""

from __future__ import annotations

from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Weights
from kvplan.readers.families.composite import Composite
from kvplan.readers.families.vision import EitherTies, projections

MOST_FEATURES = 4096


def feature_width(c: Config) -> int:
    """Width of the tower's output: ``vision_feature_layer`` is one, or a list side by side."""
    width = c.section("vision_config").whole("hidden_size")
    if not c.is_list("vision_feature_layer"):
        return width
    return width * len(c.wholes("vision_feature_layer", least=-MOST_FEATURES))


class LlavaNext(Composite):
    """Two layers with a bias that can be switched off, and the embedding of an image's line end.

    models/llava_next/modeling_llava_next.py.
    """

    newline = True

    def joint(self, c: Config, text: Config) -> Weights:
        """The projector, and what the type has beside it."""
        out = text.whole("hidden_size")
        found = projections(feature_width(c), out, out, bias=c.flag("multimodal_projector_bias"))
        return found + parts.scalar(out) if self.newline else found


class Llava(LlavaNext, EitherTies):
    """No line ends (models/llava/modeling_llava.py)."""

    newline = False


class LlavaOnevision(LlavaNext, EitherTies):
    """Line ends (models/llava_onevision/modeling_llava_onevision.py)."""


class LlavaNextVideo(LlavaOnevision):
    """Frames are pooled, by a convolution if ``spatial_pool_mode`` says so.

    models/llava_next_video/modeling_llava_next_video.py, LlavaNextVideoPooler.
    """

    def joint(self, c: Config, text: Config) -> Weights:
        """The projector and the pooler."""
        found = super().joint(c, text)
        if c.text("spatial_pool_mode") != "conv":
            return found
        width = c.section("vision_config").whole("hidden_size")
        out, stride = c.whole("spatial_pool_out_channels", width), c.whole("spatial_pool_stride")
        return found + parts.convolution("", width, out, stride, stride)


class VideoLlava(LlavaNext):
    """One tower for images and one for frames (models/video_llava/modeling_video_llava.py)."""

    newline = False

    def tower(self, c: Config, section: Config) -> Weights | None:
        """Both towers are built of the one section."""
        one = super().tower(c, section)
        return None if one is None else parts.repeat(one, 2)


class VipLlava(Composite):
    """Several of the tower's layers are normed together (models/vipllava/modeling_vipllava.py)."""

    def joint(self, c: Config, text: Config) -> Weights:
        """A norm, then two layers."""
        width, out = feature_width(c), text.whole("hidden_size")
        return (*parts.norm(width, "layer"), *projections(width, out, out))


class PaliGemma(Composite):
    """One layer, as wide as ``projection_dim`` (models/paligemma/modeling_paligemma.py)."""

    text_type = "gemma"

    def joint(self, c: Config, text: Config) -> Weights:
        """The projection."""
        width = c.section("vision_config").whole("hidden_size")
        return projections(width, c.whole("projection_dim"))


class VideoLlama3(EitherTies):
    """Two layers (models/video_llama_3/modeling_video_llama_3.py)."""

    text_type = "qwen2"

    def joint(self, c: Config, text: Config) -> Weights:
        """VideoLlama3Projector."""
        width, out = c.section("vision_config").whole("hidden_size"), text.whole("hidden_size")
        return projections(width, out, out)


class PerceptionLM(Composite):
    """A timm encoder, of whose shape the config gives the width (models/perception_lm)."""

    def tied(self, c: Config, text: Config) -> bool:
        """By the enclosing config, or by the text model where that says nothing."""
        return c.flag("tie_word_embeddings", text.flag("tie_word_embeddings"))

    def joint(self, c: Config, text: Config) -> Weights:
        """PerceptionLMMultiModalProjector; nothing where the width is left open too."""
        made = c.section("vision_config").section("model_args")
        if not made.has("embed_dim"):
            return ()
        out = text.whole("hidden_size")
        return projections(made.whole("embed_dim"), out, out)
