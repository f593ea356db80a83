"""Who sends the traffic: at its time, after a predecessor, or when a closed loop has a place.

due        its arrival, or its predecessor's end, the think time after it and its way
sent       when due and fewer than ``max_in_flight`` are open; else in the order of being due
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kvplan.simulation.servers.base import Request
from kvplan.simulation.traffic import Traffic


class Due(NamedTuple):
    """A request that wants to be sent at a time."""

    time_s: float
    request: Request


class Clients:
    """The senders of a traffic; they learn of every end and answer with what is due after it."""

    def __init__(self, traffic: Traffic) -> None:
        import numpy as np

        self.requests = list(_requests(traffic))
        _name_answers(self.requests, traffic)
        self._think = traffic.think_s
        self._way = traffic.way
        self._most = traffic.max_in_flight
        self._open = 0
        self._backlog: deque[Request] = deque()
        self._followers: dict[int, list[int]] = {}
        for index in np.flatnonzero(traffic.after >= 0).tolist():
            self._followers.setdefault(int(traffic.after[index]), []).append(index)
        order = np.argsort(traffic.arrival_s, kind="stable")
        self._starts = [
            Due(float(traffic.arrival_s[i]), self.requests[i])
            for i in order.tolist()
            if traffic.after[i] < 0
        ]

    def first(self) -> Sequence[Due]:
        """Those that wait for nobody, in the order of their time."""
        return self._starts

    @property
    def is_open(self) -> bool:
        """Whether everybody comes at a time of their own, whatever the servers do."""
        return self._most is None and not self._followers

    def may_send(self, request: Request) -> bool:
        """Whether it goes out now; else it waits for a place."""
        if self._most is not None and self._open >= self._most:
            self._backlog.append(request)
            return False
        self._open += 1
        return True

    def ended(self, request: Request, now: float) -> Iterator[Due]:
        """What its end makes due: the next of the closed loop, and those that waited for it."""
        self._open -= 1
        if self._backlog:
            following = self._backlog.popleft()
            yield Due(now + self._way.seconds(following.prompt), following)
        for index in self._followers.get(request.index, ()):
            following, thought = self.requests[index], now + float(self._think[index])
            yield Due(thought + self._way.seconds(following.prompt), following)


def _requests(traffic: Traffic) -> Iterator[Request]:
    prompts, outputs = traffic.prompt_tokens.tolist(), traffic.output_tokens.tolist()
    priorities, starts = traffic.priority.tolist(), traffic.hash_starts.tolist()
    ids, size = traffic.hash_ids.tolist(), max(traffic.hash_block, 1)
    for index, (prompt, output) in enumerate(zip(prompts, outputs, strict=True)):
        yield Request(
            index=index,
            prompt=prompt,
            output=output,
            priority=priorities[index],
            ids=ids[starts[index] : starts[index + 1]],
            id_tokens=size,
        )


def _name_answers(requests: Sequence[Request], traffic: Traffic) -> None:
    """The ids of a successor that lie past a prompt name what was answered to it."""
    import numpy as np

    for index in np.flatnonzero(traffic.after >= 0).tolist():
        before, after = requests[int(traffic.after[index])], requests[index]
        whole = before.prompt // before.id_tokens
        reach = (before.prompt + before.output) // before.id_tokens
        named = list(after.ids[:reach])
        if len(named) > whole and named[:whole] == list(before.ids[:whole]):
            before.ids, before.named = named, len(named) * before.id_tokens
