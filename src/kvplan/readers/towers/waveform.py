"""Muse Spark's encoder of waveforms: levels of patches and convolution blocks."""

from __future__ import annotations

from kvplan.core.errors import BadFile
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Weights


def muse_spark(c: Config) -> Weights:
    """MuseSparkAudioModel (transformers 5.24.0, models/muse_spark/modeling_muse_spark.py)."""
    widths, patches = c.wholes("hidden_sizes", least=1), c.wholes("patch_sizes", least=1)
    depths, levels = c.wholes("depths"), c.layers()
    if not levels or {len(widths), len(patches), len(depths)} != {levels}:
        raise BadFile(
            "The config's audio_config.hidden_sizes, patch_sizes and depths do not have one entry "
            f"for each of its {levels} layers."
        )
    found: Weights = ()
    for into, width, patch, depth in zip((1, *widths), widths, patches, depths, strict=False):
        found += (*parts.linear("", into * patch, width, bias=True), *parts.norm(width))
        found += parts.repeat(_block(c, width), depth)
    out = c.whole("out_hidden_size")
    ending = (*parts.norm(widths[-1]), *parts.linear("", widths[-1], out, bias=True))
    return (*found, *ending, *parts.norm(out))


def _block(c: Config, width: int) -> Weights:
    inner = int(width * c.number("mlp_ratio"))
    return (
        *parts.convolution("", width, width, c.whole("conv_kernel_size"), groups=width),
        *parts.norm(width),
        *parts.mlp(width, inner, gated=False, bias=True),
    )
