"""Host memory behind a pool: what was computed is kept there too, and loaded in place of computed.

    stored      when computed, beside the pool (write-through)
    found       the runs that follow what the pool itself has, as far as they are all here
    forgotten   the least recently stored or found first

vLLM's OffloadingConnector stores blocks as they are computed and forgets the least recently used
(v1/kv_offload/lru_manager.py, 0.11 and later); SGLang's HiCache writes through by default
(mem_cache/hiradix_cache.py). Storing runs beside the steps and costs them nothing here.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

from kvplan.simulation.servers.base import Segment


@dataclass(slots=True, kw_only=True)
class HostTier:
    """``capacity`` tokens; loading one takes ``token_bytes / link_bytes_per_s`` seconds."""

    capacity: int
    token_bytes: float
    link_bytes_per_s: float
    held: OrderedDict[Hashable, int] = field(default_factory=OrderedDict)
    tokens: int = 0

    def store(self, runs: Iterable[Segment]) -> None:
        """Keeps runs, the end of them forgotten first."""
        for run in reversed(list(runs)):
            if run.tokens > self.capacity:
                continue
            if run.name in self.held:
                self.held.move_to_end(run.name)
                continue
            self.held[run.name] = run.tokens
            self.tokens += run.tokens
            while self.tokens > self.capacity:
                self.tokens -= self.held.popitem(last=False)[1]

    def find(self, runs: Iterable[Segment]) -> int:
        """Tokens of the leading runs that are here."""
        found: list[Segment] = []
        for run in runs:
            if self.held.get(run.name) != run.tokens:
                break
            found.append(run)
        for run in reversed(found):
            self.held.move_to_end(run.name)
        return sum(run.tokens for run in found)

    def seconds(self, tokens: int) -> float:
        """What loading so many takes."""
        return tokens * self.token_bytes / self.link_bytes_per_s

    def check_integrity(self) -> None:
        """The tokens are those of the runs, and no more than there is room for."""
        assert self.tokens == sum(self.held.values()), f"{self.tokens} counted"
        assert self.tokens <= self.capacity, f"{self.tokens} tokens in {self.capacity}"
