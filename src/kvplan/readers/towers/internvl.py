"""InternVL's vision transformer: learned scales of the residual branches, switches throughout.

The rules are those of transformers 5.24.0, models/internvl/modeling_internvl.py.
"""

from __future__ import annotations

from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Weights
from kvplan.readers.towers import vit


def internvl(c: Config) -> Weights:
    """InternVLVisionModel."""
    width = c.whole("hidden_size")
    found = (
        *parts.scalar(width, 2 if c.flag("use_mask_token") else 1),
        *vit.patches(c, width),
        *vit.blocks(
            width,
            c.whole("intermediate_size"),
            c.layers(),
            bias=c.flag("attention_bias"),
            out_bias=True,
            mlp_bias=True,
            norm="rms" if c.text("norm_type") == "rms_norm" else "layer",
            qk_norm="all" if c.flag("use_qk_norm") else "",
            scales=2,
        ),
    )
    if c.flag("use_absolute_position_embeddings"):
        found += parts.embedding(vit.patch_count(c) + 1, width)
    if not c.flag("use_mean_pooling"):
        found += parts.norm(width, "layer")
    return found
