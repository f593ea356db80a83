"""A server that gives each request one run of memory for its longest life: what paging saves.

    pool  [ A: prompt | answer so far | reserved, not used yet or never ][ hole ][ B … ]

How servers kept caches before paging, by the three ways to reserve that the PagedAttention paper
compares with (Kwon et al. 2023, section 6.1): ``max`` tokens the model takes, the next ``power`` of
two of what will be needed, or exactly that (``oracle``). A run is the first hole that is long
enough. Nothing is shared, and nobody is ever preempted.
"""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass, field
from typing import Final

from kvplan.core.errors import BadValue
from kvplan.core.step import Chunk
from kvplan.simulation.servers.base import Batch, Request, Server

RESERVE: Final = ("max", "power", "oracle")


@dataclass(slots=True, kw_only=True)
class Waste:
    """Token-steps of the pool by what they were; their sum is the pool's tokens × steps."""

    used: int = 0
    never_used: int = 0  # reserved beyond what the request came to need
    not_yet_used: int = 0  # reserved and filled later
    scattered: int = 0  # free, while a request waits that would fit if the holes were one
    free: int = 0


@dataclass(slots=True, kw_only=True)
class ContiguousServer(Server):
    """One copy; ``runs`` are the reserved places in order of their start."""

    tokens: int
    max_len: int
    max_running: int
    batched_tokens: int
    reserve: str = "max"
    runs: list[tuple[int, int, int]] = field(default_factory=list)  # start, length, request
    places: dict[Request, tuple[int, int, int]] = field(default_factory=dict)
    chunks: list[tuple[Request, int]] = field(default_factory=list)
    fragmented: bool = False  # of the planned step: somebody waits who would fit in pieces
    waste: Waste = field(default_factory=Waste)

    def __post_init__(self) -> None:
        if self.reserve not in RESERVE:
            known = ", ".join(RESERVE)
            raise BadValue(f"{self.reserve!r} is no way to reserve a cache.", f"Known: {known}.")

    @property
    def num_blocks(self) -> int:
        """Tokens of the pool."""
        return self.tokens

    @property
    def used_blocks(self) -> int:
        """Tokens that are reserved."""
        return sum(length for _, length, _ in self.runs)

    def reserved(self, request: Request) -> int:
        """The tokens of a request's run."""
        need = request.prompt + request.output
        if self.reserve == "oracle":
            return need
        if self.reserve == "power":
            return min(1 << (need - 1).bit_length(), max(self.max_len, need))
        return self.max_len

    def refuses(self, request: Request) -> str:
        """One that is longer than a run can be."""
        need = request.prompt + request.output
        most = min(self.max_len, self.tokens)
        if need > most or self.reserved(request) > self.tokens:
            return f"{need:,} tokens where a run has {most:,}"
        return ""

    def plan_step(self) -> Batch | None:
        """A token of each that decodes, and prompts while the batch has room."""
        self.admitted.clear()
        self._admit()
        decoding = [request for request in self.running if request.generated]
        room = self.batched_tokens - len(decoding)
        self.chunks = []
        for request in self.running:
            if request.generated or room <= 0:
                continue
            length = min(request.left, room)
            room -= length
            self.chunks.append((request, length))
        if not self.running:
            return None
        self._note()
        return Batch([r.known for r in decoding], [Chunk(r.computed, n) for r, n in self.chunks])

    def end_step(self) -> list[Request]:
        """Tokens come out; who is done gives its whole run back."""
        self.advance(self.chunks)
        finished = [request for request in self.running if request.done]
        self.running = [request for request in self.running if not request.done]
        for request in finished:
            self.runs.remove(self.places.pop(request))
        return finished

    def quiet_steps(self) -> int:
        """Until the next answer is whole: runs do not grow."""
        if self.chunks or not self.running:
            return 0
        return min(request.remaining for request in self.running) - 1

    def skip(self, steps: int) -> None:
        """The planned step was noted; the others each have a token more of everybody."""
        for request in self.running:
            request.computed += steps
            request.generated += steps
            later = request.computed * steps - steps * (steps - 1) // 2
            need, (_, length, _) = request.prompt + request.output, self.places[request]
            self.waste.used += later
            self.waste.not_yet_used += need * steps - later
            self.waste.never_used += (length - need) * steps
        self._note_free(steps)

    def check_integrity(self) -> None:
        """Runs lie in the pool, apart from each other, one for each that runs."""
        end = 0
        for start, length, _ in self.runs:
            assert start >= end, f"a run at {start} begins before {end}"
            end = start + length
        assert end <= self.tokens, f"{end} tokens in a pool of {self.tokens}"
        assert len(self.runs) == len(self.running) == len(self.places), "a run without its request"

    def extras(self) -> dict[str, float]:
        """Shares of the pool over the steps that were run."""
        w = self.waste
        total = w.used + w.never_used + w.not_yet_used + w.scattered + w.free or 1
        return {
            "used_share": w.used / total,
            "reserved_never_used_share": w.never_used / total,
            "reserved_not_yet_used_share": w.not_yet_used / total,
            "fragmented_share": w.scattered / total,
        }

    def _admit(self) -> None:
        """First come, until one has no hole (a later, shorter one does not overtake)."""
        while self.waiting and len(self.running) < self.max_running:
            request = self.waiting[0]
            place = self._hole(self.reserved(request))
            if place is None:
                return
            self.waiting.pop(0)
            run = (place, self.reserved(request), request.index)
            insort(self.runs, run)
            self.places[request] = run
            self.running.append(request)
            self.admitted.append(request)
            self.counts.queried_tokens += request.prompt

    def _hole(self, length: int) -> int | None:
        """The first place where so many tokens are free in one piece."""
        end = 0
        for start, run, _ in self.runs:
            if start - end >= length:
                return end
            end = start + run
        return end if self.tokens - end >= length else None

    def _note(self) -> None:
        """Adds the step to the account of the pool."""
        for request, (_, length, _) in self.places.items():
            need = request.prompt + request.output
            self.waste.used += request.computed
            self.waste.not_yet_used += need - request.computed
            self.waste.never_used += length - need
        free = self.tokens - self.used_blocks
        waits = bool(self.waiting) and len(self.running) < self.max_running
        self.fragmented = waits and self.reserved(self.waiting[0]) <= free
        self._note_free(1)

    def _note_free(self, steps: int) -> None:
        free = self.tokens - self.used_blocks
        if self.fragmented:
            self.waste.scattered += free * steps
        else:
            self.waste.free += free * steps
