"""Virtual time: the next event is taken, the clock goes there, and what it brings is queued.

    arrival ─► router ─► server ─► wake ─► step … ─► step's end ─► finished ─► clients ─► arrival
                                                          └─► wake

Events of one moment are in the order arrivals, ends of steps, wakes, so that a step sees all that
came until it begins; among equals the first that was queued is first.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple

from kvplan.core.step import StepCost
from kvplan.simulation.clients import Clients
from kvplan.simulation.outcome import Outcome
from kvplan.simulation.record import Recorder
from kvplan.simulation.router import Router
from kvplan.simulation.servers.base import Batch, Request, Server
from kvplan.simulation.traffic import Traffic

ARRIVAL, END, WAKE = 0, 1, 2
MANY: Final = 1 << 40  # steps
FEW_EVENTS: Final = 4096  # between two reports of progress

StepTime = Callable[[Batch], float]


class Event(NamedTuple):
    """What happens at a time; ``rank`` and ``serial`` order those of one moment."""

    time_s: float
    rank: int
    serial: int
    handle: Callable[[], None]


@dataclass(slots=True)
class Loop:
    """Servers behind a router, and the clients that ask them.

    ``decoders`` are servers that take over after the first token, ``moved_s`` the time that a
    prompt's cache is under way to one. ``ahead`` decides each step as the one before it begins: who
    comes during a step is seen by the next but one. With ``skipping``, the cost that ``step_s``
    asks, steps that change nothing but lengths are taken together.
    """

    traffic: Traffic
    servers: Sequence[Server]
    router: Router
    step_s: StepTime
    decoders: Sequence[Server] = ()
    decode_router: Router | None = None
    moved_s: Callable[[Request], float] | None = None
    skipping: StepCost | None = None
    ahead: bool = False
    progress: Callable[[int], None] | None = None
    now: float = 0.0
    events: list[Event] = field(default_factory=list)
    clients: Clients = field(init=False)
    recorder: Recorder = field(init=False)
    busy: set[int] = field(default_factory=set)
    stepping: set[int] = field(default_factory=set)  # servers that have decided ahead
    late: dict[int, list[Request]] = field(default_factory=dict)  # came after such a decision
    serial: int = 0
    ended: int = 0
    arrived: int = 0
    answers: dict[int, int] = field(default_factory=dict)  # whole lengths, while prefilled apart

    def __post_init__(self) -> None:
        self.clients = Clients(self.traffic)
        self.recorder = Recorder([*self.servers, *self.decoders])

    def run(self) -> Outcome:
        """Until nothing is left to happen."""
        for due in self.clients.first():
            self._at(due.time_s, ARRIVAL, partial(self._arrive, due.request))
        handled = 0
        while self.events:
            event = heapq.heappop(self.events)
            self.now = event.time_s
            event.handle()
            handled += 1
            if self.progress and not handled % FEW_EVENTS:
                self.progress(self.ended)
        return self.recorder.outcome(self.clients.requests)

    def _at(self, time_s: float, rank: int, handle: Callable[[], None]) -> None:
        self.serial += 1
        heapq.heappush(self.events, Event(time_s, rank, self.serial, handle))

    def _arrive(self, request: Request) -> None:
        self.arrived += 1
        if not self.clients.may_send(request):
            return
        request.arrived_s = self.now
        server = self.servers[self.router.choose(request, self.servers)]
        if id(server) in self.stepping:
            self.late.setdefault(id(server), []).append(request)
        else:
            self._take(server, [request])

    def _take(self, server: Server, requests: Sequence[Request]) -> None:
        """A server learns of requests: what it can serve waits for its next decision."""
        for request in requests:
            if server.refuses(request) or any(s.refuses(request) for s in self.decoders[:1]):
                request.rejected = True
                self._ended(request)
                continue
            if self.decoders and request.output > 1:
                self.answers[request.index] = request.output
                request.output = 1
            server.add(request)
            self.recorder.look(self.now)
            self._wake_soon(server)

    def _wake_soon(self, server: Server) -> None:
        if id(server) not in self.busy:
            self.busy.add(id(server))
            self._at(self.now, WAKE, partial(self._wake, server))

    def _wake(self, server: Server) -> None:
        """The server's next step begins, if it has one."""
        batch = server.plan_step()
        late = self.late.pop(id(server), [])
        if batch is None and late:
            self.recorder.note(self.now)
            self._take(server, late)
            late, batch = [], server.plan_step()
        for request in server.admitted:
            request.admitted_s = self.now
        self._give_up(server)
        self.recorder.note(self.now)
        if batch is None:
            self.busy.discard(id(server))
            self.stepping.discard(id(server))
            return
        if self.ahead:
            self.stepping.add(id(server))
            self._take(server, late)
        ends, together = self._together(server, batch, alone=bool(late))
        self.recorder.num_steps += 1 + together
        self._at(ends, END, partial(self._end, server, together, self.now))

    def _together(self, server: Server, batch: Batch, *, alone: bool) -> tuple[float, int]:
        """When the step ends, and how many like it go before it.

        A step that ends after the next event is the last of them: what comes is seen behind it.
        ``alone`` where somebody waits whom this step has not seen: the next one may be another.
        """
        lasts = batch.waits_s + max(self.step_s(batch), batch.loads_s)
        ends, together = self.now + lasts, 0
        if alone or self.skipping is None or batch.chunks or batch.waits_s or batch.loads_s:
            return ends, 0
        quiet = server.quiet_steps()
        if quiet < 1:
            return ends, 0
        rise, most = rise_of(self.skipping, batch.contexts)
        quiet = min(quiet, most)
        is_open = self.clients.is_open and not self.decoders
        following = self._next_arrival() if is_open else self._next_event()
        while together < quiet and ends < following:
            lasts += rise
            ends += lasts
            together += 1
        return ends, together

    def _next_event(self) -> float:
        return self.events[0].time_s if self.events else math.inf

    def _next_arrival(self) -> float:
        """When somebody comes whom no server's step decides."""
        starts = self.clients.first()
        return starts[self.arrived].time_s if self.arrived < len(starts) else math.inf

    def _end(self, server: Server, together: int, began: float) -> None:
        """The step is over: who has its first token, who is done, and what comes next."""
        if together:
            before = server.used_blocks
            server.skip(together)
            self.recorder.ramp(server.used_blocks - before, self.now - began)
        finished = server.end_step()
        for request in server.begun:
            request.first_token_s = self.now
        server.begun.clear()
        for request in finished:
            self._finish(request)
        self._at(self.now, WAKE, partial(self._wake, server))

    def _finish(self, request: Request) -> None:
        """An answer is whole, or its first token is and the rest is another server's."""
        whole = self.answers.pop(request.index, None)
        if whole is None:
            request.finished_s = self.now
            self._ended(request)
            return
        request.output = whole
        moved = self.moved_s(request) if self.moved_s else 0.0
        self._at(self.now + moved, ARRIVAL, partial(self._hand_over, request))

    def _hand_over(self, request: Request) -> None:
        """The cache of a prompt has come to a server that decodes."""
        router = self.decode_router or self.router
        server = self.decoders[router.choose(request, self.decoders)]
        server.take_over(request)
        self._wake_soon(server)

    def _give_up(self, server: Server) -> None:
        for request in server.gave_up:
            self._ended(request)
        server.gave_up.clear()

    def _ended(self, request: Request) -> None:
        """Its client goes on, whether it has an answer or an error."""
        self.ended += 1
        for due in self.clients.ended(request, self.now):
            self._at(due.time_s, ARRIVAL, partial(self._arrive, due.request))


def rise_of(cost: StepCost, contexts: Sequence[int]) -> tuple[float, int]:
    """What each further decode step takes longer, and for how many steps that holds.

    A context that has reached a layer's window costs no more there.
    """
    rise, most = 0.0, MANY
    for group in cost.attention:
        if group.window is None:
            rise += group.read_s * len(contexts)
            continue
        below = [group.window - context for context in contexts if context < group.window]
        rise += group.read_s * len(below)
        most = min([most, *below])
    return rise, most
