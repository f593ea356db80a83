"""Readings one after the other: what happened between them, and a plot of a terminal's width.

Counters that went down are of a server that started again: what they say is since then.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from kvplan.logs.metrics.reading import Reading, share

MOST_READINGS: Final = 512
BARS: Final = "▁▂▃▄▅▆▇█"
COUNTERS: Final = (
    "prompt_tokens", "generation_tokens", "preemptions", "prefix_hit_tokens",
    "prefix_queried_tokens", "prefix_computed_tokens", "evicted_tokens", "finished_requests",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Moment:
    """A reading, when it was taken, and what happened since the one before."""

    at_s: float
    reading: Reading
    since: dict[str, float]
    seconds: float

    def rate(self, name: str) -> float | None:
        """A counter by the second since the reading before."""
        grown = self.since.get(name)
        return grown / self.seconds if grown is not None and self.seconds > 0 else None

    @property
    def hit_rate(self) -> float | None:
        """Of what was looked for since the reading before."""
        hits, computed = (
            self.since.get("prefix_hit_tokens"),
            self.since.get("prefix_computed_tokens"),
        )
        queried = self.since.get("prefix_queried_tokens")
        if computed is not None and hits is not None:
            queried = computed + hits
        return share(hits, queried)


@dataclass(slots=True)
class Trend:
    """The last readings of a server."""

    moments: deque[Moment] = field(default_factory=lambda: deque(maxlen=MOST_READINGS))

    def add(self, reading: Reading, at_s: float) -> Moment:
        """Take the next reading."""
        before = self.moments[-1] if self.moments else None
        since = _since(before.reading, reading) if before else {}
        moment = Moment(at_s, reading, since, at_s - before.at_s if before else 0.0)
        self.moments.append(moment)
        return moment

    def values(self, name: str) -> list[float | None]:
        """A gauge over time; of a counter its rate; ``hit_rate`` between readings."""
        if name == "hit_rate":
            return [moment.hit_rate for moment in self.moments]
        if name in COUNTERS:
            return [moment.rate(name) for moment in self.moments]
        return [moment.reading.get(name) for moment in self.moments]


def _since(before: Reading, now: Reading) -> dict[str, float]:
    grown = {}
    for name in COUNTERS:
        first, last = before.get(name), now.get(name)
        if last is not None:
            grown[name] = last - first if first is not None and last >= first else last
    return grown


def sparkline(values: Iterable[float | None], top: float | None = None, width: int = 48) -> str:
    """Bars of the last values, the tallest for ``top`` or the largest; blank where unknown."""
    shown = list(values)[-width:]
    known = [value for value in shown if value is not None]
    most = top if top is not None else max(known, default=0.0)
    return "".join(" " if value is None else _bar(value, most) for value in shown)


def _bar(value: float, most: float) -> str:
    if most <= 0:
        return BARS[0]
    return BARS[min(len(BARS) - 1, max(0, int(value / most * len(BARS))))]
