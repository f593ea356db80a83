"""MoonViT, the vision transformer of the Kimi models: a table of positions by height and width.

The rules are those of transformers 5.24.0, models/kimi_k25/modeling_kimi_k25.py.
"""

from __future__ import annotations

from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Weights
from kvplan.readers.towers import vit


def moonvit(c: Config) -> Weights:
    """Kimi_K25VisionModel."""
    width = c.whole("hidden_size")
    return (
        *parts.convolution("", 3, width, *vit.sides(c, "patch_size")),
        *parts.scalar(c.whole("pos_emb_height") * c.whole("pos_emb_width") * width),
        *vit.encoder(c),
    )
