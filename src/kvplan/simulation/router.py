"""Which copy of the model gets a request, and what that costs in prefix hits.

round-robin    in turn
least-loaded   the one with the fewest requests
prefix-aware   the one that has most of the prompt, unless it is much fuller than the emptiest
               (as SGLang's router: sgl-router/src/policies/cache_aware.rs)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Final

from kvplan.core.errors import UnknownName
from kvplan.simulation.servers.base import Request, Server

# cache_aware.rs (0.3): defaults of cache_threshold, balance_abs_threshold, balance_rel_threshold.
MATCH_SHARE: Final = 0.3
MORE_REQUESTS: Final = 64
TIMES_MORE: Final = 1.5


class Router(ABC):
    """Chooses a server for each request."""

    @abstractmethod
    def choose(self, request: Request, servers: Sequence[Server]) -> int:
        """The number of the server."""


class RoundRobin(Router):
    """In turn."""

    def __init__(self) -> None:
        self._next = 0

    def choose(self, request: Request, servers: Sequence[Server]) -> int:
        """The next one."""
        chosen = self._next % len(servers)
        self._next += 1
        return chosen


class LeastLoaded(Router):
    """To the one with the fewest requests, waiting ones among them; the first of several."""

    def choose(self, request: Request, servers: Sequence[Server]) -> int:
        """The emptiest."""
        return min(range(len(servers)), key=lambda number: servers[number].load)


class PrefixAware(Router):
    """To the one that has most of the prompt, if that is enough and it is not much fuller.

    A server that was sent a prompt counts as having it, also before it has computed it.
    """

    def __init__(self) -> None:
        self._sent: list[dict[object, None]] = []

    def choose(self, request: Request, servers: Sequence[Server]) -> int:
        """The likeliest, or the emptiest where none has enough or the load is uneven."""
        while len(self._sent) < len(servers):
            self._sent.append({})
        chosen = self._pick(request, servers)
        self._sent[chosen].update(dict.fromkeys(request.ids))
        return chosen

    def _pick(self, request: Request, servers: Sequence[Server]) -> int:
        loads = [server.load for server in servers]
        emptiest = min(range(len(loads)), key=loads.__getitem__)
        most, least = max(loads), min(loads)
        if most - least > MORE_REQUESTS and most > TIMES_MORE * least:
            return emptiest
        matches = [self._match(request, number) for number in range(len(servers))]
        best = max(range(len(servers)), key=lambda number: (matches[number], -loads[number]))
        return best if matches[best] > MATCH_SHARE else emptiest

    def _match(self, request: Request, number: int) -> float:
        """The share of a prompt's blocks that a server was sent before."""
        sent, same = self._sent[number], 0
        for name in request.ids:
            if name not in sent:
                break
            same += 1
        return same * request.id_tokens / request.prompt


ROUTERS: Final[dict[str, type[Router]]] = {
    "round-robin": RoundRobin,
    "least-loaded": LeastLoaded,
    "prefix-aware": PrefixAware,
}


def router_of(name: str) -> Router:
    """A router by its name.

    Raises:
        UnknownName: there is none of that name.
    """
    if name not in ROUTERS:
        raise UnknownName("router", name, hint=f"Known: {', '.join(ROUTERS)}.")
    return ROUTERS[name]()
