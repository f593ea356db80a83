"""The worker processes: each job has one, for so long, and so many may wait."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import sys
import time
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from kvplan.core.errors import BadQuestion
from kvplan.readers.settings import Settings
from kvplan.web.jobs import Job, Reply, refusal
from kvplan.web.verbs import VERBS
from kvplan.web.worker import LENGTH, packed

MOST_WAITING = 256
LIMIT_S = 20.0
START_S = 60.0
COMPILING_S = 180.0  # of the simulator, once after an installation; a question of it waits so long
KEPT_BYTES = 64 << 20  # of replies, to be given again
LONGEST_KEPT = 4096  # characters of a question whose reply is kept
KEPT_S = 600.0  # for so long: a model of the hub may change
SENT = {"config", *(key for verb in VERBS.values() for key in verb.pasted)}


def usual_number() -> int:
    """A worker a core, two at least: one may wait for the hub."""
    return max(2, min(4, os.cpu_count() or 2))


class Workers:
    """A fixed number of processes; a job that takes longer than ``limit_s`` ends its process.

    ``settings`` hold in all of them.
    """

    def __init__(
        self,
        number: int | None = None,
        limit_s: float = LIMIT_S,
        settings: Settings | None = None,
    ) -> None:
        self.settings = settings
        self.number = number or usual_number()
        self.limit_s = limit_s
        self._idle: asyncio.Queue[asyncio.subprocess.Process | None] = asyncio.Queue()
        self._alive: set[asyncio.subprocess.Process] = set()
        self._waiting = 0
        self._kept = Kept(KEPT_BYTES)
        self._compiled: asyncio.Future[None] | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Workers]:
        """The pool, for as long as the server runs."""
        try:
            for process in await asyncio.gather(*(self._start() for _ in range(self.number))):
                self._idle.put_nowait(process)
            self._compiled = asyncio.ensure_future(self._compile())
            yield self
        finally:
            if self._compiled is not None:
                self._compiled.cancel()
                await asyncio.gather(self._compiled, return_exceptions=True)
            for process in list(self._alive):
                await self._end(process)

    async def do(self, job: Job) -> Reply:
        """The reply to a job; one that was given before is given again."""
        key = key_of(job)
        known = None if key is None else self._kept.get(key)
        if known is not None:
            return known
        if self._waiting >= MOST_WAITING:
            return refusal(job.verb, BadQuestion("The server is busy.", "Ask again."), 429)
        self._waiting += 1
        try:
            if job.verb == "simulate" and self._compiled is not None:
                await asyncio.shield(self._compiled)
            reply = await self._ask(job)
        finally:
            self._waiting -= 1
        if key is not None and reply.status != 424:
            self._kept.put(key, reply)
        return reply

    async def _ask(self, job: Job) -> Reply:
        process = await self._idle.get()
        try:
            if process is None or process.returncode is not None:
                process = await self._start()
            return await asyncio.wait_for(_exchange(process, job), self.limit_s)
        except TimeoutError:
            hint = "Ask the command, which has no limit: kvplan --help."
            said = f"The answer takes longer than the {self.limit_s:g} s of this server."
            await self._end(process)
            process = None
            return refusal(job.verb, BadQuestion(said, hint), 422)
        except (OSError, EOFError, asyncio.IncompleteReadError):
            await self._end(process)
            process = None
            said = "The process that worked on this question has ended."
            return refusal(job.verb, BadQuestion(said, "Ask for less at once."), 422)
        except asyncio.CancelledError:
            # Whoever asked went away; the reply would be read by the next.
            await self._end(process)
            process = None
            raise
        finally:
            self._idle.put_nowait(process)

    async def _start(self) -> asyncio.subprocess.Process:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "kvplan.web.worker", stdin=pipe, stdout=pipe
        )
        self._alive.add(process)
        if process.stdin is not None:
            process.stdin.write(packed(self.settings))
        await asyncio.wait_for(_message(process), START_S)
        return process

    async def _compile(self) -> None:
        """The simulator is compiled in a process of its own, which no question's limit ends."""
        process = await asyncio.create_subprocess_exec(sys.executable, "-m", "kvplan.web.warm")
        try:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), COMPILING_S)
        finally:
            await self._end(process)

    async def _end(self, process: asyncio.subprocess.Process | None) -> None:
        if process is None:
            return
        self._alive.discard(process)
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def _exchange(process: asyncio.subprocess.Process, job: Job) -> Reply:
    sink = process.stdin
    assert sink is not None
    sink.write(packed(tuple(job)))
    await sink.drain()
    return Reply(*await _message(process))


async def _message(process: asyncio.subprocess.Process) -> tuple[Any, ...]:
    """What a worker says: first, with nothing, that it is ready; then a reply a job."""
    source = process.stdout
    assert source is not None
    length = LENGTH.unpack(await source.readexactly(LENGTH.size))[0]
    found: tuple[Any, ...] = pickle.loads(await source.readexactly(length))
    return found


def key_of(job: Job) -> str | None:
    """What a job is kept under; None for one that holds what was sent, of which nothing is kept."""
    for key, value in job.given.items():
        sent = key in SENT or str(value).lstrip()[:1] == "{"
        if sent or not isinstance(value, str | int | float | list | None):
            return None
    key = repr((job.kind, job.verb, sorted(job.given.items()), job.part, job.offline))
    return key if len(key) <= LONGEST_KEPT else None


class Kept:
    """Replies by their questions, the longest unused given up first."""

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._replies: OrderedDict[str, tuple[float, Reply]] = OrderedDict()
        self._size = 0

    def get(self, key: str) -> Reply | None:
        """The reply, if it is kept."""
        since, reply = self._replies.get(key, (0.0, None))
        if reply is None:
            return None
        if time.monotonic() - since > KEPT_S:
            self._drop(key)
            return None
        self._replies.move_to_end(key)
        return reply

    def put(self, key: str, reply: Reply) -> None:
        """Keep a reply."""
        if key in self._replies or len(reply.body) > self.most_bytes // 8:
            return
        self._replies[key] = (time.monotonic(), reply)
        self._size += len(reply.body)
        while self._size > self.most_bytes:
            self._drop(next(iter(self._replies)))

    def _drop(self, key: str) -> None:
        self._size -= len(self._replies.pop(key)[1].body)
