"""Measured decode steps to the coefficients of the one formula that predicts the others.

    seconds(batch, context) = fixed + batch × (sequence + read × context)

Two lengths at one batch give ``fixed`` (the weights) and ``read`` (the cache); several batches give
``sequence`` too. More points than coefficients are met by least squares of the relative errors, no
coefficient below nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

from kvplan.core.errors import BadQuestion
from kvplan.core.step import AttentionCost, Knot, StepCost


class Point(NamedTuple):
    """A decode step as it was measured: sequences, tokens that each sees, seconds."""

    batch: float
    context: float
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Decode:
    """The coefficients, in seconds; ``error`` is the largest relative error of its own points."""

    fixed_s: float
    sequence_s: float
    read_s: float
    error: float

    def seconds(self, batch: float, context: float) -> float:
        """A step of ``batch`` sequences that see ``context`` tokens each."""
        return self.fixed_s + batch * (self.sequence_s + self.read_s * context)

    def step_cost(self, window: int | None = None) -> StepCost:
        """The same as the common type of a step's cost; it knows no prefill."""
        return StepCost(
            fixed_s=self.fixed_s,
            sequence_s=self.sequence_s,
            linear=(Knot(1, 0.0),),
            attention=(AttentionCost(window=window, read_s=self.read_s, pair_s=0.0),),
            source="calibrated",
        )


def calibrate(points: Sequence[Point]) -> Decode:
    """The coefficients that meet the points best.

    Raises:
        BadQuestion: fewer than two different points.
    """
    if len({(point.batch, point.context) for point in points}) < 2:
        raise BadQuestion(
            "A calibration needs steps at two lengths or batches at least.",
            "Measure with --prompt at two lengths, or --concurrency 1,4.",
        )
    several = len({point.batch for point in points}) > 1
    columns = (0, 1, 2) if several and len(points) > 2 else (0, 2)
    found = _least_squares(points, columns)
    decode = Decode(fixed_s=found[0], sequence_s=found[1], read_s=found[2], error=0.0)
    errors = [abs(decode.seconds(p.batch, p.context) / p.seconds - 1) for p in points]
    return Decode(fixed_s=found[0], sequence_s=found[1], read_s=found[2], error=max(errors))


def _least_squares(points: Sequence[Point], columns: Sequence[int]) -> list[float]:
    """The best coefficients that are not negative: the best of the solutions with some at zero."""
    rows = [_row(point) for point in points]
    best, least = [0.0, 0.0, 0.0], float("inf")
    for size in range(len(columns), 0, -1):
        for kept in combinations(columns, size):
            solved = _solve(rows, kept)
            if solved is None or min(solved) < 0:
                continue
            found = [0.0, 0.0, 0.0]
            for column, value in zip(kept, solved, strict=True):
                found[column] = value
            off = sum(
                (sum(a * b for a, b in zip(row, found, strict=True)) - 1) ** 2 for row in rows
            )
            if off < least - 1e-15:
                best, least = found, off
    return best


def _row(point: Point) -> tuple[float, float, float]:
    """The formula's features over the seconds, so that each residual is relative."""
    batch, context, seconds = point
    return 1 / seconds, batch / seconds, batch * context / seconds


def _solve(rows: Sequence[Sequence[float]], kept: Sequence[int]) -> list[float] | None:
    """Normal equations of the kept columns by elimination; None where they are singular."""
    scale = {j: max(abs(row[j]) for row in rows) or 1.0 for j in kept}
    scaled = [[row[j] / scale[j] for j in kept] for row in rows]
    size = len(kept)
    matrix = [
        [sum(row[i] * row[j] for row in scaled) for j in range(size)]
        + [sum(row[i] for row in scaled)]
        for i in range(size)
    ]
    for i in range(size):
        pivot = max(range(i, size), key=lambda k: abs(matrix[k][i]))
        if abs(matrix[pivot][i]) < 1e-12:
            return None
        matrix[i], matrix[pivot] = matrix[pivot], matrix[i]
        for k in range(size):
            if k != i:
                factor = matrix[k][i] / matrix[i][i]
                matrix[k] = [a - factor * b for a, b in zip(matrix[k], matrix[i], strict=True)]
    return [matrix[i][size] / matrix[i][i] / scale[kept[i]] for i in range(size)]
