"""The cost of a step: pairs by the definition, the curve through its knots."""

from __future__ import annotations

import pytest

from kvplan.core.step import AttentionCost, Chunk, Knot, StepCost, pairs

COST = StepCost(
    fixed_s=1.0,
    sequence_s=0.5,
    linear=(Knot(1, 2.0), Knot(4, 2.0), Knot(8, 6.0)),
    attention=(
        AttentionCost(window=None, read_s=0.1, pair_s=0.01),
        AttentionCost(window=4, read_s=1.0, pair_s=0.1),
    ),
    source="a test",
)


@pytest.mark.parametrize("window", [None, 1, 4, 7])
@pytest.mark.parametrize("chunk", [Chunk(0, 1), Chunk(0, 9), Chunk(2, 3), Chunk(5, 4), Chunk(9, 2)])
def test_pairs_are_those_of_the_mask(chunk: Chunk, window: int | None) -> None:
    """Each new token sees what came before and itself, at most a window."""
    seen = [position + 1 for position in range(chunk.start, chunk.start + chunk.length)]

    assert sum(n if window is None else min(n, window) for n in seen) == pairs(chunk, window)


@pytest.mark.parametrize(
    ("tokens", "seconds"), [(0, 0.0), (1, 2.0), (3, 2.0), (6, 4.0), (8, 6.0), (10, 8.0)]
)
def test_the_curve_through_its_knots(tokens: int, seconds: float) -> None:
    """Linear between knots, the last slope past the last."""
    assert seconds == COST.linear_s(tokens)


def test_a_step_is_the_sum_of_its_kernels() -> None:
    """Fixed, weights, sequences, cache read, pairs."""
    expected = 1.0 + 2.0 + 0.5 * 3 + 0.1 * (3 + 9) + 0.01 * 3 + 1.0 * (3 + 4) + 0.1 * 3

    assert pytest.approx(expected) == COST.seconds([3, 9], [Chunk(0, 2)])
    assert COST.seconds([6] * 5) == pytest.approx(COST.decode_s(5, 6))
