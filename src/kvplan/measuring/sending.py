"""A phase sent to a server: closed loops, open loops, and requests that follow others.

Every request that was sent is a record, whatever became of it: also of a phase that was ended.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kvplan.measuring.client import Client
from kvplan.measuring.dialect import Dialect
from kvplan.measuring.failures import INTERRUPTED
from kvplan.measuring.phases import Phase, Planned
from kvplan.measuring.prompts import Prompts
from kvplan.measuring.reply import Reply

MOST_IN_FLIGHT: Final = 1024  # of an open loop: a server that answers slower is asked no faster


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A request and its reply; ``due_s`` is when it should have gone out."""

    planned: Planned
    reply: Reply
    due_s: float


class Sender:
    """Sends phases; ``records`` grow as answers come."""

    def __init__(
        self, client: Client, dialect: Dialect, prompts: Prompts, deadline_s: float
    ) -> None:
        self.client, self.dialect, self.prompts = client, dialect, prompts
        self.deadline_s = deadline_s
        self.records: list[Record] = []
        self.is_late = False  # the time for the whole measurement was over

    async def send(self, phase: Phase) -> None:
        """All requests of a phase, each recorded, until the deadline."""
        bodies = [self._body(phase, i) for i in range(len(phase.requests))]
        done = [asyncio.Event() for _ in phase.requests]
        start = time.perf_counter()
        if phase.rate is None:
            waiting = iter(range(len(bodies)))
            workers = max(1, min(phase.concurrency or 1, len(bodies)))
            async with asyncio.TaskGroup() as group:
                for _ in range(workers):
                    group.create_task(self._loop(phase, bodies, waiting, done, start))
        else:
            await self._open(phase, bodies, done, start)

    def _body(self, phase: Phase, index: int) -> dict[str, object]:
        planned = phase.requests[index]
        text = self.prompts.text(planned.parts)
        salt = planned.parts[-1].seed
        return self.dialect.body(text, planned.output_tokens, reuse=phase.reuse, salt=salt)

    async def _loop(
        self,
        phase: Phase,
        bodies: list[dict[str, object]],
        waiting: Iterator[int],
        done: list[asyncio.Event],
        start: float,
    ) -> None:
        """One client of a closed loop."""
        for index in waiting:
            if self._over():
                done[index].set()  # nobody waits for what is not sent
                return
            await self._one(phase, bodies, index, done, start)

    async def _open(
        self, phase: Phase, bodies: list[dict[str, object]], done: list[asyncio.Event], start: float
    ) -> None:
        room = asyncio.Semaphore(MOST_IN_FLIGHT)

        async def one(index: int) -> None:
            try:
                await self._one(phase, bodies, index, done, start)
            finally:
                room.release()

        async with asyncio.TaskGroup() as group:
            for index, planned in enumerate(phase.requests):
                wait = start + planned.arrival_s - time.perf_counter()
                if planned.after < 0 and wait > 0:
                    await asyncio.sleep(wait)
                if self._over():
                    break
                await room.acquire()
                group.create_task(one(index))

    async def _one(
        self,
        phase: Phase,
        bodies: list[dict[str, object]],
        index: int,
        done: list[asyncio.Event],
        start: float,
    ) -> None:
        planned = phase.requests[index]
        if planned.after >= 0:
            await done[planned.after].wait()
            await asyncio.sleep(planned.think_s)
            if self._over():
                done[index].set()
                return
        now = time.perf_counter()
        due = now if phase.rate is None or planned.after >= 0 else start + planned.arrival_s
        reply = Reply(sent_s=now, ended_s=now, failure=INTERRUPTED)
        try:
            reply = await self.client.stream(self.dialect.path, bodies[index])
        finally:
            done[index].set()
            if reply.failure == INTERRUPTED:
                reply.ended_s = time.perf_counter()
            self.records.append(Record(planned=planned, reply=reply, due_s=due))

    def _over(self) -> bool:
        self.is_late = self.is_late or time.perf_counter() >= self.deadline_s
        return self.is_late
