"""Least squares of relative errors with coefficients that are not negative, of a few columns."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

Row = tuple[float, ...]


def fit_relative(features: Sequence[Row], values: Sequence[float]) -> list[float]:
    """The coefficients of the features that meet positive values best; 0 where one does not help.

    With few columns the best of all solutions that keep some of them at zero is the optimum.
    """
    rows = [tuple(x / y for x in row) for row, y in zip(features, values, strict=True)]
    width = len(rows[0]) if rows else 0
    best, least = [0.0] * width, float("inf")
    for size in range(width, 0, -1):
        for kept in combinations(range(width), size):
            solved = _solve(rows, kept)
            if solved is None or min(solved) < 0:
                continue
            found = [0.0] * width
            for column, value in zip(kept, solved, strict=True):
                found[column] = value
            off = sum((_dot(row, found) - 1) ** 2 for row in rows)
            if off < least - 1e-15:
                best, least = found, off
    return best


def _dot(one: Sequence[float], other: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


def _solve(rows: Sequence[Row], kept: Sequence[int]) -> list[float] | None:
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
        if abs(matrix[pivot][i]) < 1e-9:
            return None
        matrix[i], matrix[pivot] = matrix[pivot], matrix[i]
        for k in range(size):
            if k != i:
                factor = matrix[k][i] / matrix[i][i]
                matrix[k] = [a - factor * b for a, b in zip(matrix[k], matrix[i], strict=True)]
    return [matrix[i][size] / matrix[i][i] / scale[kept[i]] for i in range(size)]
