"""ERNIE 4.5 VL's vision encoder.

The rules are those of transformers 5.24.0, models/ernie4_5_vl_moe/modeling_ernie4_5_vl_moe.py.
"""

from __future__ import annotations

from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Weights
from kvplan.readers.towers import vit


def ernie4_5(c: Config) -> Weights:
    """Flat patches through a matrix, blocks, a norm."""
    width = c.whole("hidden_size")
    return (
        *parts.linear("", c.whole("in_channels") * c.whole("patch_size") ** 2, width),
        *vit.blocks(width, c.whole("intermediate_size"), c.layers("depth")),
        *parts.norm(width, "layer"),
    )
