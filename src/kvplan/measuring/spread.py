"""Many values as mean and percentiles."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

PERCENTILES: Final = (50, 90, 95, 99)


def percentile(ordered: Sequence[float], percent: float) -> float:
    """Of ascending values, between two by their distance: 50 % of [1, 2] is 1.5."""
    place = (len(ordered) - 1) * percent / 100
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def spread(values: Iterable[float]) -> dict[str, float | None]:
    """``mean``, ``p50``, ``p90``, ``p95``, ``p99``; each None of no values."""
    ordered = sorted(values)
    names = [f"p{percent}" for percent in PERCENTILES]
    if not ordered:
        return dict.fromkeys(["mean", *names])
    found: dict[str, float | None] = {"mean": sum(ordered) / len(ordered)}
    for name, percent in zip(names, PERCENTILES, strict=True):
        found[name] = percentile(ordered, percent)
    return found
