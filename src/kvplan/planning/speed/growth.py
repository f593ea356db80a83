"""How speed grows with the batch: where the cache overtakes the weights, where more is in vain."""

from __future__ import annotations

from typing import Final, NamedTuple

from kvplan.core.step import StepCost

MOST: Final = 1 << 16
LITTLE: Final = 0.1  # a twice as large batch that gains less has saturated


class Point(NamedTuple):
    """A batch on one rank: seconds of its step, its tokens a second together and of each."""

    batch: int
    step_s: float
    tokens_per_s: float
    tokens_per_s_per_sequence: float


def point(cost: StepCost, batch: int, context: int) -> Point:
    """One batch of sequences of one context."""
    step = cost.decode_s(batch, context)
    return Point(batch, step, batch / step, 1 / step)


def overtakes(cost: StepCost, context: int) -> int | None:
    """The least batch whose cache takes as long as everything that does not grow with it.

    None where that is beyond any batch, as with states of fixed size.
    """
    each = cost.sequence_s + sum(
        group.read_s * (context if group.window is None else min(context, group.window))
        for group in cost.attention
    )
    if each <= 0:
        return None
    low, high = 1, MOST
    if high * each < cost.fixed_s + cost.linear_s(high):
        return None
    while low < high:
        middle = (low + high) // 2
        if middle * each >= cost.fixed_s + cost.linear_s(middle):
            high = middle
        else:
            low = middle + 1
    return low


def saturates(cost: StepCost, context: int) -> int | None:
    """The least power of two after which a batch twice as large gains less than a tenth."""
    batch = 1
    while batch <= MOST:
        gained = point(cost, 2 * batch, context).tokens_per_s / (
            point(cost, batch, context).tokens_per_s
        )
        if gained < 1 + LITTLE:
            return batch
        batch *= 2
    return None
