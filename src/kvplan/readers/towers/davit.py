"""DaViT, Florence-2's encoder: stages of blocks that attend over windows and over channels.

models/florence2/modeling_florence2.py (transformers 5.24.0), Florence2VisionBackbone.
"""

from __future__ import annotations

from kvplan.core.errors import BadFile
from kvplan.readers.config import MAX_LAYERS, Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Weights


def davit(c: Config) -> Weights:
    """Each stage: a convolution with a norm before or after it, then pairs of blocks."""
    widths, depths = stage_widths(c), c.wholes("depths")
    kernels, norms_first = c.wholes("patch_size", least=1), flags(c)
    if not len(widths) <= min(len(depths), len(kernels), len(norms_first)):
        raise BadFile("The config's embed_dim has more stages than its other lists.")
    if sum(depths) > MAX_LAYERS:
        raise BadFile(f"The config's depths name more than {MAX_LAYERS:,} blocks.")
    found: Weights = ()
    into = c.whole("in_channels")
    for width, depth, kernel, norm_first in zip(widths, depths, kernels, norms_first, strict=False):
        found += parts.convolution("", into, width, kernel, kernel)
        found += parts.norm(into if norm_first else width, "layer")
        found += parts.repeat(block(c, width), 2 * depth)
        into = width
    return found


def block(c: Config, width: int) -> Weights:
    """Two depthwise convolutions, attention (over windows or over channels) and a network."""
    inner = int(width * c.number("mlp_ratio"))
    depthwise = parts.convolution("", width, width, 3, 3, groups=width)
    return (
        *parts.repeat(depthwise, 2),
        *parts.attention(width, 1, 1, width, bias=c.flag("qkv_bias"), out_bias=True),
        *parts.mlp(width, inner, gated=False, bias=True),
        *parts.norm(width, "layer", 2),
    )


def stage_widths(c: Config) -> list[int]:
    """Width of each stage; the last is the encoder's.

    Raises:
        BadFile: no stages.
    """
    widths = c.wholes("embed_dim", least=1)
    if not widths:
        raise BadFile("The config's embed_dim has no stages.")
    return widths


def flags(c: Config) -> list[bool]:
    """Whether the norm of each stage comes before its convolution."""
    found = c.value("patch_prenorm", ())
    if not isinstance(found, list | tuple):
        raise BadFile("The config's patch_prenorm is not a list.")
    return [bool(flag) for flag in found]
