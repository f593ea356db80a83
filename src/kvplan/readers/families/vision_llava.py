"""LLaVA and its kin: a tower, a projector of two layers, a text model.

Cited files are those of transformers 5.24.0.
"""

from __future__ import annotations

from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Weights
from kvplan.readers.families.composite import Composite

MOST_FEATURES = 4096


def num_feature_layers(c: Config) -> int:
    """How many of the tower's layers the projector reads: the key names one, or a list of them."""
    if not c.is_list("vision_feature_layer"):
        return 1
    return len(c.wholes("vision_feature_layer", least=-MOST_FEATURES))


class LlavaNext(Composite):
    """Two layers with a bias that can be switched off, and the embedding of an image's line end.

    models/llava_next/modeling_llava_next.py.
    """

    newline = True

    def joint(self, c: Config, text: Config) -> Weights:
        """The projector, and what the type has beside it."""
        width = c.section("vision_config").whole("hidden_size") * num_feature_layers(c)
        out, bias = text.whole("hidden_size"), c.flag("multimodal_projector_bias")
        return (
            *parts.linear("", width, out, bias),
            *parts.linear("", out, out, bias),
            *(parts.scalar(out) if self.newline else ()),
        )


class Llava(LlavaNext):
    """No line ends; the text model may tie the head too.

    models/llava/configuration_llava.py, LlavaConfig.__post_init__.
    """

    newline = False

    def tied(self, c: Config, text: Config) -> bool:
        """By the word of one of them."""
        return c.flag("tie_word_embeddings") or text.flag("tie_word_embeddings")


class LlavaOnevision(Llava):
    """Line ends, and tied by either word (models/llava_onevision)."""

    newline = True


class LlavaNextVideo(LlavaOnevision):
    """Frames are pooled, by a convolution if ``spatial_pool_mode`` says so.

    models/llava_next_video/modeling_llava_next_video.py, LlavaNextVideoPooler.
    """

    def joint(self, c: Config, text: Config) -> Weights:
        """The projector and the pooler."""
        found = super().joint(c, text)
        if c.text("spatial_pool_mode") != "conv":
            return found
        width, stride = (
            c.section("vision_config").whole("hidden_size"),
            c.whole("spatial_pool_stride"),
        )
        out = c.whole("spatial_pool_out_channels", width)
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
        width = c.section("vision_config").whole("hidden_size") * num_feature_layers(c)
        out = text.whole("hidden_size")
        return (
            *parts.norm(width, "layer"),
            *parts.linear("", width, out, bias=True),
            *parts.linear("", out, out, bias=True),
        )


class PaliGemma(Composite):
    """One layer, as wide as ``projection_dim`` (models/paligemma/modeling_paligemma.py)."""

    text_type = "gemma"

    def joint(self, c: Config, text: Config) -> Weights:
        """The projection."""
        width = c.section("vision_config").whole("hidden_size")
        return parts.linear("", width, c.whole("projection_dim"), bias=True)
