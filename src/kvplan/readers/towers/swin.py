"""Swin and Donut's Swin: stages of windows, each with half the sides and twice the width.

models/swin/modeling_swin.py and models/donut/modeling_donut_swin.py (transformers 5.24.0).
"""

from __future__ import annotations

from kvplan.core.errors import BadFile
from kvplan.readers.config import MAX_LAYERS, Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Weights
from kvplan.readers.towers.vit import blocks, patch_count, patches, sides

MOST_STAGES = 16


def swin(c: Config) -> Weights:
    """A norm at the end, and absolute positions where switched on."""
    return (*stages(c, spare_positions=0), *parts.norm(width(c), "layer"))


def donut(c: Config) -> Weights:
    """No norm at the end, and one row of positions more."""
    return stages(c, spare_positions=1)


def width(c: Config) -> int:
    """Width of the last stage."""
    return c.whole("embed_dim") << (len(depths(c)) - 1)


def tokens(c: Config) -> int:
    """Patches of the last stage: an odd side is padded before it is halved."""
    height, across = sides(c, "image_size")
    patch_height, patch_across = sides(c, "patch_size")
    rows, columns = height // patch_height, across // patch_across
    for _ in depths(c)[1:]:
        rows, columns = (rows + 1) // 2, (columns + 1) // 2
    return rows * columns


def stages(c: Config, spare_positions: int) -> Weights:
    """Patches, a norm, then each stage and the merging of patches before the next."""
    first, counts, heads = c.whole("embed_dim"), depths(c), c.wholes("num_heads", least=1)
    if len(heads) < len(counts):
        raise BadFile(f"The config's num_heads has {len(heads)} stages and depths {len(counts)}.")
    found = (*patches(c, first), *parts.norm(first, "layer"))
    if c.flag("use_absolute_embeddings"):
        found += parts.embedding(patch_count(c) + spare_positions, first)
    for place, count in enumerate(counts):
        if place:
            found += merging(first << (place - 1))
        found += stage(c, first << place, count, heads[place])
    return found


def stage(c: Config, dim: int, depth: int, heads: int) -> Weights:
    """Blocks with a table of biases by distance within a window."""
    span = [2 * side - 1 for side in sides(c, "window_size")]
    table = parts.embedding(span[0] * span[1], heads)
    inner = int(c.number("mlp_ratio") * dim)
    body = blocks(dim, inner, depth, bias=c.flag("qkv_bias"), out_bias=True, mlp_bias=True)
    return body + parts.repeat(table, depth)


def merging(dim: int) -> Weights:
    """Four patches to one of twice the width."""
    return parts.norm(4 * dim, "layer") + parts.linear("", 4 * dim, 2 * dim)


def depths(c: Config) -> list[int]:
    """Blocks of each stage.

    Raises:
        BadFile: no stages, or more than any model has.
    """
    counts = c.wholes("depths")
    if not 0 < len(counts) <= MOST_STAGES or sum(counts) > MAX_LAYERS:
        raise BadFile(f"The config's depths names {len(counts)} stages, not 1 to {MOST_STAGES}.")
    return counts
