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
    return table_vit(c, c.whole("pos_emb_height") * c.whole("pos_emb_width"))


def first_moonvit(c: Config) -> Weights:
    """Kimi-VL's (modeling_kimi_vl.py, published with moonshotai/Kimi-VL-A3B-Instruct)."""
    rows = c.whole("init_pos_emb_height", 64) * c.whole("init_pos_emb_width", 64)
    return table_vit(c, rows)


def table_vit(c: Config, rows: int) -> Weights:
    """Patches, a table of ``rows`` positions, an encoder."""
    width = c.whole("hidden_size")
    return (
        *parts.convolution("", 3, width, *vit.sides(c, "patch_size")),
        *parts.scalar(rows * width),
        *vit.encoder(c),
    )
