"""RADIO: summary tokens, learned positions for large images, scaled branches."""

from __future__ import annotations

from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Weights
from kvplan.readers.towers import vit


def radio(c: Config) -> Weights:
    """RadioModel (transformers 5.24.0, models/radio/modeling_radio.py)."""
    width, patch = c.whole("hidden_size"), c.whole("patch_size")
    flat = c.whole("num_channels") * patch**2
    heads, bias = c.whole("num_attention_heads"), c.flag("qkv_bias")
    gated = c.flag("use_swiglu_ffn")
    found = (
        *parts.linear("", flat, width),
        *parts.embedding((c.whole("max_img_size") // patch) ** 2, width),
        *parts.embedding(
            c.whole("num_cls_tokens", least=0) + c.whole("num_registers", least=0), width
        ),
        *vit.blocks(
            width,
            _inner(c, width, gated),
            c.layers(),
            bias=bias,
            out_bias=True,
            mlp_bias=True,
            gated=gated,
            heads=heads,
            head_dim=c.whole("head_dim", max(1, width // heads)),
            scales=2,
        ),
    )
    if c.has("video_temporal_patch_size"):
        found += parts.linear("", c.whole("video_temporal_patch_size") * flat, width)
    return found


def _inner(c: Config, width: int, gated: bool) -> int:
    """A gated network is two thirds as wide, rounded up to eight."""
    inner = int(width * c.number("mlp_ratio"))
    return (inner * 2 // 3 + 7) // 8 * 8 if gated else inner
