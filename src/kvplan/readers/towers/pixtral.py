"""Pixtral's vision transformer: rotary positions, gated networks, no biases."""

from __future__ import annotations

from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Weights
from kvplan.readers.towers import vit


def pixtral(c: Config) -> Weights:
    """A norm before the blocks (transformers 5.24.0, models/pixtral/modeling_pixtral.py)."""
    width = c.whole("hidden_size")
    return (
        *vit.patches(c, width, bias=False),
        *parts.norm(width),
        *vit.blocks(
            width, c.whole("intermediate_size"), c.layers(), bias=False, norm="rms", gated=True
        ),
    )
