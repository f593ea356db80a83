"""Janus's vision transformer: SigLIP with switches.

The rules are those of transformers 5.24.0, models/janus/modeling_janus.py.
"""

from __future__ import annotations

from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Weights
from kvplan.readers.towers import vit


def janus(c: Config) -> Weights:
    """JanusVisionModel; norms of queries and keys are as wide as the model."""
    width = c.whole("hidden_size")
    inner = int(width * c.number("mlp_ratio"))
    norms = 4 if c.flag("use_qk_norm") else 2
    return (
        *vit.patches(c, width),
        *parts.embedding(vit.patch_count(c), width),
        *vit.blocks(
            width,
            inner,
            c.layers(),
            bias=c.flag("attention_bias"),
            out_bias=True,
            mlp_bias=True,
            norms=norms,
        ),
        *parts.norm(width, "layer"),
    )
