"""The server's metrics and memory before, during and after a phase.

Texts are kept as they come and read when the phase is over, so that reading them takes no time from
the streams. The pauses between them grow with the length of a phase: a few hundred in any.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from kvplan.logs.metrics.reading import Reading, read_metrics
from kvplan.measuring.client import Client
from kvplan.measuring.failures import Failed
from kvplan.measuring.memory import Memory

FIRST_PAUSE_S: Final = 0.25
LONGEST_PAUSE_S: Final = 5.0
GROWTH: Final = 1.02
COUNTERS: Final = (
    "preemptions", "evicted_tokens", "prefix_hit_tokens", "prefix_queried_tokens",
    "prefix_computed_tokens", "prompt_tokens", "generation_tokens", "finished_requests",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The server at a moment."""

    at_s: float
    figures: Mapping[str, float]
    memory_bytes: int | None


@dataclass(slots=True)
class Watched:
    """A phase as the server saw it: samples in order, the first before and the last after."""

    samples: list[Sample] = field(default_factory=list)

    def grown(self, name: str) -> int | None:
        """How far a counter went; None where there is none, or the server started again."""
        values = [s.figures[name] for s in self.samples if name in s.figures]
        if len(values) < 2 or values[-1] < values[0]:
            return None
        return round(values[-1] - values[0])

    def peak(self, name: str) -> float | None:
        """The most of a gauge."""
        return max((s.figures[name] for s in self.samples if name in s.figures), default=None)

    @property
    def peak_memory_bytes(self) -> int | None:
        """The most memory that was seen in use."""
        return max((s.memory_bytes for s in self.samples if s.memory_bytes), default=None)


class Watch:
    """Looks at a server while a phase runs: ``async with Watch(…) as watch``."""

    def __init__(self, client: Client, memory: Memory, *, has_metrics: bool) -> None:
        self._client, self._memory, self._has_metrics = client, memory, has_metrics
        self._raw: list[tuple[float, bytes, int | None]] = []
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Watch:
        await self._look()
        self._task = asyncio.create_task(self._keep_looking())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        with suppress(asyncio.CancelledError):  # of a measurement that is ended
            await self._look()

    def watched(self) -> Watched:
        """What was seen."""
        return Watched(
            [
                Sample(at_s=at, figures=_figures(data), memory_bytes=memory)
                for at, data, memory in self._raw
            ]
        )

    async def _keep_looking(self) -> None:
        pause = FIRST_PAUSE_S
        while True:
            await asyncio.sleep(pause)
            await self._look()
            pause = min(LONGEST_PAUSE_S, pause * GROWTH)

    async def _look(self) -> None:
        data = b""
        if self._has_metrics:
            with suppress(Failed):
                data = await self._client.text("/metrics")
        self._raw.append((time.perf_counter(), data, self._memory.now()))


def _figures(data: bytes) -> Mapping[str, float]:
    found: Reading | None = read_metrics(data.decode("utf-8", "replace").splitlines())
    return found.figures if found is not None else {}
