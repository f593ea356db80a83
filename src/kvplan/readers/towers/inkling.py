"""The encoders of the Inkling models: patches folded step by step, tokens of sound, a transformer.

The cited files are those of transformers 5.24.0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise
from operator import mul
from typing import NamedTuple

from kvplan.core.errors import BadFile
from kvplan.core.units import ceil_div
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Weights
from kvplan.readers.towers import vit

MOST_PATCH = 1 << 16


class Scale(NamedTuple):
    """What one vector stands for: a box of frames by pixels, and its channels."""

    frames: int
    side: int
    channels: int

    @property
    def size(self) -> int:
        """Pixels of the box."""
        return self.frames * self.side**2


def sound(c: Config) -> Weights:
    """models/inkling/modeling_inkling.py, InklingAudioModel: a table of tokens and a norm."""
    width = c.whole("text_hidden_size")
    rows = c.whole("n_mel_bins") * c.whole("mel_vocab_size")
    return (*parts.embedding(rows, width), *parts.norm(width))


def folding(c: Config) -> Weights:
    """models/inkling/modeling_inkling.py, InklingVisionModel: a projection from scale to scale."""
    plan, width = planned(c), c.whole("text_hidden_size")
    found: Weights = ()
    for place, (start, end) in enumerate(pairwise(plan)):
        folded = (end.frames // start.frames) * (end.side // start.side) ** 2
        last = place == len(plan) - 2
        rows = width if last else end.channels
        found += parts.linear("", start.channels * folded, rows)
        found += () if last else parts.norm(rows)
    return found + parts.norm(width)


def planned(c: Config) -> list[Scale]:
    """The scale after each layer: those nearest to equal ratios (plan_out_scales)."""
    scales, depth = possible_scales(c), c.layers("n_layers")
    if depth < 1:
        raise BadFile("The config's vision_config.n_layers is 0, and the encoder needs a layer.")
    sizes = [math.log(scale.size) for scale in scales]
    total = c.whole("patch_size") ** 2 * c.whole("temporal_patch_size") * c.whole("num_channels")
    ideal = [place * math.log(total) / depth for place in range(depth + 1)]
    if depth >= len(scales):
        chosen = [min(range(len(sizes)), key=lambda k: abs(sizes[k] - wish)) for wish in ideal]
    else:
        chosen = assigned(ideal, sizes)
    return [scales[0], *[scales[place] for place in chosen[1:-1]], scales[-1]]


def possible_scales(c: Config) -> list[Scale]:
    """Prime by prime, first in space, then in time; channels in steps of 64."""
    channels = c.whole("num_channels")
    sides = [*accumulate(prime_factors(c, "patch_size"), mul)]
    if not sides:
        raise BadFile("The config's vision_config.patch_size is 1, which leaves nothing to fold.")
    last = sides[-1]
    spatial = [Scale(1, side, ceil_div(side**2 * channels, 64) * 64) for side in sides]
    times = accumulate(prime_factors(c, "temporal_patch_size"), mul)
    temporal = [Scale(time, last, last**2 * channels * time * 64) for time in times]
    return [Scale(1, 1, channels), *spatial, *temporal]


def prime_factors(c: Config, key: str) -> list[int]:
    """The prime factors of a size, the largest first."""
    number, found, prime = c.whole(key), [], 2
    if number > MOST_PATCH:
        raise BadFile(f"The config's {key} is {number}, which is not a size up to {MOST_PATCH:,}.")
    while prime * prime <= number:
        while not number % prime:
            found.append(prime)
            number //= prime
        prime += 1
    if number > 1:
        found.append(number)
    return found[::-1]


def assigned(wishes: Sequence[float], sizes: Sequence[float]) -> list[int]:
    """A size of its own for each wish, at the least total distance; both are sorted.

    Sorted points are matched best in order, so the best of the first ``n`` wishes among the first
    ``m`` sizes either leaves the last size out or gives it to the last wish.
    """
    rows, cols = len(wishes), len(sizes)
    best = [[0.0] * (cols + 1)] + [[math.inf] * (cols + 1) for _ in range(rows)]
    for row in range(1, rows + 1):
        for col in range(row, cols + 1):
            cost = abs(wishes[row - 1] - sizes[col - 1])
            best[row][col] = min(best[row][col - 1], best[row - 1][col - 1] + cost)
    found, col = [], cols
    for row in range(rows, 0, -1):
        while best[row][col] == best[row][col - 1]:
            col -= 1
        col -= 1
        found.append(col)
    return found[::-1]


def inkling2(c: Config) -> Weights:
    """models/inkling2/modeling_inkling2.py, Inkling2VisionModel: a merger without a norm."""
    width = c.whole("hidden_size")
    inner = c.whole("intermediate_size", int(width * c.number("mlp_ratio")))
    joined, middle = width * c.whole("spatial_merge_size") ** 2, c.whole("projection_hidden_dim")
    bias = c.flag("projector_bias")
    return (
        *parts.linear("", c.whole("num_channels") * c.whole("patch_size") ** 2, width),
        *parts.embedding(c.whole("posemb_grid_size") ** 2, width),
        *parts.scalar(width, 2),
        *parts.norm(width, "layer"),
        *vit.blocks(width, inner, c.layers(), scales=2),
        *parts.linear("", joined, middle, bias),
        *parts.linear("", middle, c.whole("text_hidden_size"), bias),
    )
