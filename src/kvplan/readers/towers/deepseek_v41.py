"""DeepSeek V4.1's vision encoder (inference/model.py published with DeepSeek-V4.1-Flash)."""

from __future__ import annotations

from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Weights
from kvplan.readers.towers import vit


def vision(c: Config) -> Weights:
    """Patches, blocks with gated networks and RMS norms, a final norm; positions are rotary."""
    width, heads = c.whole("hidden_size"), c.whole("num_attention_heads")
    return (
        *vit.patches(c, width),
        *vit.blocks(
            width,
            c.whole("intermediate_size"),
            c.layers(),
            mlp_bias=False,
            norm="rms",
            gated=True,
            heads=heads,
        ),
        *parts.norm(width),
    )
