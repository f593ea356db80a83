"""Vision transformers: patches, positions, blocks of attention and MLP, a final norm."""

from __future__ import annotations

from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Weights


def blocks(
    width: int,
    inner: int,
    depth: int,
    *,
    bias: bool = True,
    norm: str = "layer",
    gated: bool = False,
    heads: int = 1,
) -> Weights:
    """``depth`` blocks: attention of the model's width, a network, two norms."""
    one = (
        *parts.attention(width, heads, heads, width // heads, bias=bias),
        *parts.mlp(width, inner, gated=gated, bias=bias),
        *parts.norm(width, norm, 2),
    )
    return parts.repeat(one, depth)


def siglip(c: Config) -> Weights:
    """SigLIP's vision model (transformers 5.24.0, models/siglip/modeling_siglip.py).

    The pooling head is built unless ``vision_use_head`` is off.
    """
    width, inner = c.whole("hidden_size"), c.whole("intermediate_size")
    patch = c.whole("patch_size")
    found = (
        *parts.convolution("", c.whole("num_channels"), width, patch, patch),
        *parts.embedding((c.whole("image_size") // patch) ** 2, width),
        *blocks(width, inner, c.layers()),
        *parts.norm(width, "layer"),
    )
    if c.flag("vision_use_head", True):
        probe = parts.scalar(width)
        pooling = parts.attention(width, 1, 1, width, bias=True)
        network = parts.mlp(width, inner, gated=False, bias=True)
        found += (*probe, *pooling, *parts.norm(width, "layer"), *network)
    return found
