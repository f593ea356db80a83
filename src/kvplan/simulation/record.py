"""What happened, written down as it happens: sums over time, a timeline of bounded length."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kvplan.simulation.outcome import Outcome, Timeline
from kvplan.simulation.servers.base import Counts, Request, Server

if TYPE_CHECKING:
    from kvplan.simulation.outcome import Floats, Ints

MAX_SAMPLES = 4096  # of a timeline; when full every other one goes


@dataclass(slots=True)
class Gauge:
    """A value over time: its mean and its peak."""

    now: float = 0
    peak: float = 0
    area: float = 0.0

    def set(self, value: float) -> None:
        """The value from now on."""
        self.now = value
        self.peak = max(self.peak, value)


@dataclass(slots=True)
class Samples:
    """Rows of the timeline, thinned evenly when there are too many."""

    rows: list[tuple[float, ...]] = field(default_factory=list)
    every: int = 1
    seen: int = 0

    @property
    def wants(self) -> bool:
        """Whether the next row may be kept."""
        return self.seen % self.every == 0

    def add(self, row: tuple[float, ...]) -> None:
        """A row, kept if it is one of every ``every``."""
        if self.seen % self.every == 0:
            if len(self.rows) == MAX_SAMPLES:
                self.rows = self.rows[::2]
                self.every *= 2
            if self.seen % self.every == 0:
                self.rows.append(row)
        self.seen += 1


@dataclass(slots=True)
class Recorder:
    """The course of several servers together."""

    servers: Sequence[Server]
    used: Gauge = field(default_factory=Gauge)
    running: Gauge = field(default_factory=Gauge)
    waiting: Gauge = field(default_factory=Gauge)
    samples: Samples = field(default_factory=Samples)
    num_steps: int = 0
    last_s: float = 0.0

    def note(self, now: float) -> None:
        """The state of all servers from now on, and a row of the timeline."""
        self.look(now)
        if self.samples.wants:
            counts = self.counts()
            self.samples.add((
                now, self.used.now, self.running.now, self.waiting.now,
                counts.queried_tokens, counts.hit_tokens, counts.preemptions,
            ))  # fmt: skip
        else:
            self.samples.seen += 1

    def ramp(self, more: int, lasted: float) -> None:
        """So many blocks more came into use evenly over a time that was counted without them."""
        self.used.area += more / 2 * lasted
        self.used.peak = max(self.used.peak, sum(server.used_blocks for server in self.servers))

    def look(self, now: float) -> None:
        """The state of all servers from now on."""
        for gauge in (self.used, self.running, self.waiting):
            gauge.area += gauge.now * (now - self.last_s)
        self.last_s = now
        self.used.set(sum(server.used_blocks for server in self.servers))
        self.running.set(sum(len(server.running) for server in self.servers))
        self.waiting.set(sum(server.num_waiting for server in self.servers))

    def counts(self) -> Counts:
        """The servers' counts, added up."""
        total = Counts()
        for server in self.servers:
            for name in Counts.__slots__:
                setattr(total, name, getattr(total, name) + getattr(server.counts, name))
        return total

    def outcome(self, requests: Sequence[Request]) -> Outcome:
        """All of it as columns."""
        import numpy as np

        counts, lasted = self.counts(), self.last_s or 1.0
        return Outcome(
            arrived_s=_floats(request.arrived_s for request in requests),
            admitted_s=_floats(request.admitted_s for request in requests),
            first_token_s=_floats(request.first_token_s for request in requests),
            finished_s=_floats(request.finished_s for request in requests),
            hit_tokens=_ints(request.hit for request in requests),
            preemptions=_ints(request.preemptions for request in requests),
            rejected=np.array([request.rejected for request in requests], dtype=np.bool_),
            duration_s=self.last_s,
            num_steps=self.num_steps,
            queried_tokens=counts.queried_tokens,
            computed_tokens=counts.computed_tokens,
            recomputed_tokens=counts.recomputed_tokens,
            evicted_blocks=counts.evicted_blocks,
            num_blocks=sum(server.num_blocks for server in self.servers),
            mean_used_blocks=self.used.area / lasted,
            peak_used_blocks=int(self.used.peak),
            mean_running=self.running.area / lasted,
            max_running=int(self.running.peak),
            mean_waiting=self.waiting.area / lasted,
            max_waiting=int(self.waiting.peak),
            timeline=_timeline(self.samples.rows),
        )


def _timeline(rows: Sequence[tuple[float, ...]]) -> Timeline:
    import numpy as np

    table = np.array(rows, dtype=np.float64).reshape(-1, 7)
    whole = table.astype(np.int64)
    return Timeline(
        time_s=table[:, 0],
        used_blocks=whole[:, 1],
        running=whole[:, 2],
        waiting=whole[:, 3],
        queried_tokens=whole[:, 4],
        hit_tokens=whole[:, 5],
        preemptions=whole[:, 6],
    )


def _floats(values: Iterable[float]) -> Floats:
    import numpy as np

    return np.array(list(values), dtype=np.float64)


def _ints(values: Iterable[int]) -> Ints:
    import numpy as np

    return np.array(list(values), dtype=np.int64)
