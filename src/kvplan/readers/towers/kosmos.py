"""Kosmos-2.5's vision encoder, which is Pix2Struct's: positions by row and by column.

The rules are those of transformers 5.24.0, models/kosmos2_5/modeling_kosmos2_5.py.
"""

from __future__ import annotations

from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Weights
from kvplan.readers.towers import vit


def kosmos2_5(c: Config) -> Weights:
    """Flat patches, two tables of positions, gated blocks without biases."""
    width = c.whole("hidden_size")
    return (
        *parts.linear("", c.whole("patch_embed_hidden_size"), width, bias=True),
        *parts.embedding(2 * c.whole("max_num_patches"), width),
        *vit.blocks(
            width,
            c.whole("intermediate_size"),
            c.layers(),
            bias=False,
            norm="rms",
            gated=True,
            heads=c.whole("num_attention_heads"),
            head_dim=c.whole("head_dim"),
        ),
        *parts.norm(width),
    )
