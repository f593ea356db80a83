"""CLIP's vision transformer and what is built on it.

The rules are those of transformers 5.24.0, models/clip/modeling_clip.py.
"""

from __future__ import annotations

from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Weights
from kvplan.readers.towers import vit
from kvplan.readers.towers.deepseek_ocr import convolved


def clip(c: Config) -> Weights:
    """CLIPVisionModel: a class token, learned positions, norms around the blocks."""
    width = c.whole("hidden_size")
    return (
        *vit.patches(c, width, bias=False),
        *without_patches(c),
        *parts.norm(width, "layer"),
    )


def without_patches(c: Config) -> Weights:
    """The transformer over patches that another encoder made, without the last norm."""
    width = c.whole("hidden_size")
    return (
        *parts.scalar(width),
        *parts.embedding(vit.patch_count(c) + 1, width),
        *parts.norm(width, "layer"),
        *vit.blocks(width, c.whole("intermediate_size"), c.layers()),
    )


def unlimited_ocr(c: Config) -> Weights:
    """SAM's encoder, whose output CLIP's reads (models/unlimited_ocr/modeling_unlimited_ocr.py)."""
    return (*convolved(c.section("sam_config")), *without_patches(c.section("encoder_config")))
