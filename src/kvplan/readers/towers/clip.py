"""CLIP's vision transformer and those that keep its shape."""

from __future__ import annotations

from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Weights
from kvplan.readers.towers import vit


def clip(c: Config) -> Weights:
    """A class token, learned positions, a norm before and one after the blocks.

    transformers 5.24.0, models/clip/modeling_clip.py, CLIPVisionModel.
    """
    width, patch = c.whole("hidden_size"), c.whole("patch_size")
    return (
        *parts.scalar(width),
        *parts.convolution("", c.whole("num_channels"), width, patch, patch, bias=False),
        *parts.embedding((c.whole("image_size") // patch) ** 2 + 1, width),
        *vit.blocks(width, c.whole("intermediate_size"), c.layers()),
        *parts.norm(width, "layer", 2),
    )
