"""A measurement from the first question to the last answer.

    who answers ─► how its prompts are made ─► phases, each watched ─► rows

Ctrl-C ends the phase that runs; what was measured until then is the result.
"""

from __future__ import annotations

import asyncio
import gc
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final

from kvplan.core.errors import BadQuestion
from kvplan.measuring.client import Address, Client
from kvplan.measuring.connection import Limits
from kvplan.measuring.dialect import dialect_of
from kvplan.measuring.memory import Memory, memory_of
from kvplan.measuring.phases import Phase, Shape, synthetic
from kvplan.measuring.prompts import prepare
from kvplan.measuring.sending import Sender
from kvplan.measuring.server import Server, identify
from kvplan.measuring.summary import Measured
from kvplan.measuring.watching import Watch
from kvplan.measuring.workload import Workload

MOST_REQUESTS: Final = 100_000

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is measured, and with what patience.

    ``workload`` is recorded traffic; without it each of ``shapes`` is sent, a shape a length.
    """

    address: str
    shapes: tuple[Shape, ...]
    workload: Workload | None = None
    model: str | None = None
    chat: bool = False
    limits: Limits = field(default_factory=Limits)
    max_time_s: float = 900.0
    pool_tokens: int | None = None
    pid: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """All that was seen; ``is_whole`` is False where it was ended before its end."""

    server: Server
    measured: tuple[Measured, ...]
    memory: Memory
    is_verified: bool
    overhead_tokens: int
    is_whole: bool
    ended_by: str | None


def experiment(asked: Asked, progress: Progress | None = None) -> Experiment:
    """Measure.

    Raises:
        SourceUnreachable: nobody answers at the address.
        BadQuestion: what answers cannot be measured as asked.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(_experiment(asked, progress))
    with ThreadPoolExecutor(1) as aside:  # a notebook has a loop of its own
        return aside.submit(lambda: asyncio.run(_experiment(asked, progress))).result()


async def _experiment(asked: Asked, progress: Progress | None) -> Experiment:
    address = Address(asked.address)
    client = Client(address, asked.limits)
    try:
        server = await identify(client, asked.model)
        salt = uuid.uuid4().hex[:12]
        dialect = dialect_of(server.engine, server.model, chat=asked.chat)
        prompts, dialect, _ = await prepare(client, dialect, salt)
        if asked.workload is not None:
            phases = asked.workload.phases(prompts, server.max_model_len)
        else:
            phases = [
                phase
                for shape in asked.shapes
                for phase in synthetic(
                    shape,
                    prompts,
                    salt=salt,
                    holds=holds(server, shape, asked.pool_tokens),
                    can_switch=dialect.reuse_off is not None,
                )
            ]
        _check(phases)
        memory = memory_of(address.port, is_local=address.is_loopback, pid=asked.pid)
        sender = Sender(client, dialect, prompts, time.perf_counter() + asked.max_time_s)
        measuring = _Measuring(client, sender, memory, server.metrics is not None, progress)
        await measuring.run(phases)
    finally:
        await client.close()
    return Experiment(
        server=server,
        measured=tuple(measuring.measured),
        memory=memory,
        is_verified=prompts.verified,
        overhead_tokens=prompts.overhead,
        is_whole=measuring.ended_by is None,
        ended_by=measuring.ended_by,
    )


def holds(server: Server, shape: Shape, pool_tokens: int | None) -> int | None:
    """Prompts of the shape that the server's cache keeps at once; None where it does not say."""
    each = shape.prompt_tokens + shape.output_tokens
    pool = pool_tokens or server.pool_tokens
    if pool is None:
        return server.slots
    by_tokens = max(1, pool // each)
    return min(by_tokens, server.slots) if server.slots else by_tokens


def _check(phases: list[Phase]) -> None:
    count = sum(len(phase.requests) for phase in phases)
    if not count:
        raise BadQuestion("There is no request to send.")
    if count > MOST_REQUESTS:
        raise BadQuestion(
            f"{count:,} requests are more than the {MOST_REQUESTS:,} that one measurement sends.",
            "Ask with fewer --requests.",
        )


class _Measuring:
    """Phases one after the other."""

    def __init__(
        self,
        client: Client,
        sender: Sender,
        memory: Memory,
        has_metrics: bool,
        progress: Progress | None,
    ) -> None:
        self._client, self._sender, self._memory = client, sender, memory
        self._has_metrics, self._progress = has_metrics, progress
        self.measured: list[Measured] = []
        self.ended_by: str | None = None

    async def run(self, phases: list[Phase]) -> None:
        """All phases, or those until somebody ends them."""
        collects = gc.isenabled()
        gc.disable()  # a collection of all objects would be a gap between two tokens
        try:
            for phase in phases:
                await self._phase(phase, len(self.measured), len(phases))
                gc.collect(1)
                if self._sender.is_late:
                    self.ended_by = "the time for the whole measurement (--max-time)"
                    return
        except asyncio.CancelledError:
            self.ended_by = "Ctrl-C"
        finally:
            if collects:
                gc.enable()

    async def _phase(self, phase: Phase, index: int, count: int) -> None:
        if self._progress is not None:
            self._progress(_title(phase), index, count)
        sender = self._sender
        sender.records = []
        started = time.perf_counter()
        watch = Watch(self._client, self._memory, has_metrics=self._has_metrics)
        try:
            async with watch:
                started = time.perf_counter()
                try:
                    await sender.send(phase)
                finally:
                    ended = time.perf_counter()
        finally:
            self.measured.append(
                Measured(
                    phase=phase,
                    records=tuple(sender.records),
                    watched=watch.watched(),
                    started_s=started,
                    ended_s=ended,
                )
            )


def _title(phase: Phase) -> str:
    pace = f"{phase.concurrency} at once" if phase.rate is None else f"{phase.rate:g} a second"
    marks = ("" if phase.reuse else ", reuse off") + (", under pressure" if phase.pressure else "")
    return f"{phase.kind}, {pace}{marks}"
