"""vLLM's scheduler as a server of the loop: copies behind a router, host memory, prefill apart.

Every decision is the paged reference's (``paged/scheduler.py``); here are names for blocks, what a
step computes, and blocks that come over a link: from host memory, from another server, swapped in.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from kvplan.core.step import Chunk
from kvplan.core.units import ceil_div
from kvplan.simulation.paged.cache import Hit, PagedCache, most_blocks
from kvplan.simulation.paged.request import Keys
from kvplan.simulation.paged.request import Request as Paged
from kvplan.simulation.paged.scheduler import Scheduled, Scheduler
from kvplan.simulation.paged.settings import PagedSettings
from kvplan.simulation.servers.base import Batch, Request, Segment, Server
from kvplan.simulation.servers.host import HostTier


class TieredCache(PagedCache):
    """A paged cache that also finds what lies in host memory or was computed elsewhere.

    A request that is looked up has nothing computed: what comes over a link is noted there as
    computed, so that blocks are taken for it and no step is spent on it, as vLLM does with a
    connector's tokens (v1/core/sched/scheduler.py, num_external_computed_tokens).
    """

    def __init__(self, settings: PagedSettings, host: HostTier | None) -> None:
        super().__init__(settings)
        self.host = host
        self.given: dict[Paged, int] = {}  # computed by another server
        self.loaded: dict[Paged, int] = {}

    def lookup(self, request: Paged) -> Hit:
        """The pool's hit; ``request.num_computed`` is what comes from elsewhere behind it."""
        hit = super().lookup(request)
        more = max(0, self.given.get(request, 0) - hit.num_tokens)
        if self.host is not None and not more:
            more = self.host.find(self._runs(request, hit.num_tokens))
        request.num_computed = self.loaded[request] = more
        return hit

    def _runs(self, request: Paged, start: int) -> list[Segment]:
        """Blocks from ``start`` on, but not the last token's."""
        size = self.settings.alignment
        most = (request.num_tokens - 1) // size * size
        return [Segment(request.keys(end), size) for end in range(start + size, most + 1, size)]


@dataclass(slots=True, kw_only=True)
class VllmServer(Server):
    """One copy of vLLM. ``block_bytes`` and ``link_bytes_per_s`` time what is swapped."""

    settings: PagedSettings
    host: HostTier | None = None
    block_bytes: int = 0
    link_bytes_per_s: float = 0.0
    scheduler: Scheduler = field(init=False)
    cache: TieredCache = field(init=False)
    paged: dict[Request, Paged] = field(default_factory=dict)
    asked: dict[Paged, Request] = field(default_factory=dict)
    parked: set[Request] = field(default_factory=set)
    step: Scheduled = field(default_factory=dict)
    gave_way: bool = False  # in the planned step: the next one may admit whom this one did not
    away: dict[Request, int] = field(default_factory=dict)  # blocks of those swapped out
    swapped: int = 0
    loaded: int = 0

    def __post_init__(self) -> None:
        self.scheduler = Scheduler(self.settings)
        self.cache = TieredCache(self.settings, self.host)
        self.scheduler.cache = self.cache

    @property
    def num_blocks(self) -> int:
        """Those that can be used, the null block not among them."""
        return self.settings.num_blocks - 1

    @property
    def used_blocks(self) -> int:
        """Blocks that a request holds."""
        return self.cache.pool.num_used

    @property
    def num_waiting(self) -> int:
        """Requests in the scheduler's queue."""
        return len(self.parked)

    def refuses(self, request: Request) -> str:
        """A prompt without room for an answer, or more blocks than there are."""
        most = self.settings.max_model_len
        if request.prompt >= most:
            return f"{request.prompt:,} tokens, and the longest sequence has {most:,}"
        whole = min(request.prompt + request.output, most)
        needed = most_blocks(self.settings, whole)
        return "" if needed <= self.num_blocks else f"{needed:,} blocks of {self.num_blocks:,}"

    def add(self, request: Request) -> None:
        """A request waits."""
        paged = Paged(
            number=request.index,
            num_prompt=request.prompt,
            num_output=request.output,
            keys=keys_of(request),
            priority=request.priority,
            order=request.index,
            num_generated=request.generated,
        )
        self.paged[request], self.asked[paged] = paged, request
        self.scheduler.add(paged)
        self.parked.add(request)

    def take_over(self, request: Request) -> None:
        """Its prompt's blocks have come; they are taken when it is admitted."""
        self.add(request)
        self.cache.given[self.paged[request]] = request.prompt

    def cached_tokens(self, request: Request) -> int:
        """What the pool has of a prompt."""
        paged = Paged(
            number=-1, num_prompt=request.prompt, num_output=1, keys=keys_of(request)
        )  # fmt: skip
        return PagedCache.lookup(self.cache, paged).num_tokens

    def plan_step(self) -> Batch | None:
        """The scheduler's step, as what it computes."""
        self.admitted.clear()
        before = self.scheduler.num_preemptions
        self.step = self.scheduler.step()
        self._note_admitted()
        self.gave_way = self.scheduler.num_preemptions > before
        if self.gave_way:
            self._note_preempted()
        if not self.step:
            return None
        contexts: list[int] = []
        chunks: list[Chunk] = []
        for paged, tokens in self.step.items():
            start = paged.num_computed - tokens
            if tokens == 1 and start >= paged.num_prompt:
                contexts.append(start + 1)
            else:
                chunks.append(Chunk(start, tokens))
                self.counts.computed_tokens += tokens
        return Batch(contexts, chunks, *self._moved())

    def quiet_steps(self) -> int:
        """Until an answer is whole or a block is, while all of one full group decode.

        Nothing is taken, kept or freed before, so that whoever waits still has no room.
        """
        settings = self.settings
        if self.gave_way or len(settings.groups) > 1 or settings.groups[0].kind != "full":
            return 0
        size, most = settings.groups[0].block_size, settings.max_model_len
        found = size
        for paged in self.scheduler.running:
            filled = paged.num_computed % size
            left = min(paged.num_output - paged.num_generated, most - paged.num_tokens) - 1
            found = min(found, size - 1 - filled if filled else 0, left)
        return max(0, found)

    def skip(self, steps: int) -> None:
        """So many tokens more of each, in blocks that they have."""
        for paged in self.scheduler.running:
            paged.num_computed += steps
            paged.num_generated += steps
            paged.furthest = max(paged.furthest, paged.num_computed)
            self.asked[paged].generated += steps

    def end_step(self) -> list[Request]:
        """Tokens come out of requests whose known tokens are all computed."""
        sampled = {paged for paged in self.step if paged.num_computed >= paged.num_tokens}
        if self.host is not None:
            for paged, tokens in self.step.items():
                self._store(paged, tokens)
        ended = self.scheduler.settle(self.step, sampled)
        for paged in sampled:
            self.emit(self.asked[paged])
        finished = [self.asked.pop(paged) for paged in ended]
        for request in finished:
            self.cache.given.pop(self.paged.pop(request), None)
            self.running.remove(request)
        self.counts.evicted_blocks = self.cache.pool.num_evicted
        self.counts.recomputed_tokens = self.scheduler.recomputed_tokens
        return finished

    def check_integrity(self) -> None:
        """The reference's own check, and the same requests on both sides."""
        self.scheduler.check_integrity()
        here = {self.paged[request] for request in self.running}
        assert here == set(self.scheduler.running), "running here and there differ"
        assert len(self.parked) == len(self.scheduler.waiting), "waiting here and there differ"
        if self.host is not None:
            self.host.check_integrity()

    def _note_admitted(self) -> None:
        """Those that run now and waited before."""
        for paged in self.scheduler.running[::-1]:
            request = self.asked[paged]
            if request not in self.parked:
                break
            self.parked.discard(request)
            self.running.append(request)
            self.swapped += self.away.pop(request, 0)
            loaded = self.cache.loaded.pop(paged, 0)
            self.counts.host_hit_tokens += 0 if paged in self.cache.given else loaded
            if paged in self.scheduler.hits:
                request.hit = self.scheduler.hits[paged]
                self.counts.queried_tokens += request.prompt
                self.counts.hit_tokens += request.hit
            if not request.preemptions and not request.generated:
                self.admitted.append(request)

    def _note_preempted(self) -> None:
        """Those that ran and wait now."""
        still = set(self.scheduler.running)
        for request in [r for r in self.running if self.paged[r] not in still]:
            self.running.remove(request)
            self.parked.add(request)
            request.preemptions += 1
            self.counts.preemptions += 1
            if self.paged[request].is_swapped:
                self.away[request] = self._blocks(self.paged[request].num_computed)
                self.swapped += self.away[request]
            self.cache.given.pop(self.paged[request], None)

    def _moved(self) -> tuple[float, float]:
        """Seconds that the step waits for swapped blocks, and that loads take beside it."""
        moved = self.swapped * self.block_bytes
        waits = moved / self.link_bytes_per_s if moved else 0.0
        self.swapped = 0
        loads = 0.0
        if self.host is not None:
            loads = self.host.seconds(self.counts.host_hit_tokens - self.loaded)
            self.loaded = self.counts.host_hit_tokens
        self.counts.moved_s += waits + loads
        return waits, loads

    def _blocks(self, tokens: int) -> int:
        """Blocks of all groups for so many tokens, windows as if they were none."""
        return sum(ceil_div(tokens, group.block_size) for group in self.settings.groups)

    def _store(self, paged: Paged, tokens: int) -> None:
        """Whole blocks that this step computed go to host memory."""
        assert self.host is not None
        size = self.settings.alignment
        first = (paged.num_computed - tokens) // size * size + size
        ends = range(first, paged.num_computed + 1, size)
        self.host.store(Segment(paged.keys(end), size) for end in ends)


def keys_of(request: Request) -> Keys:
    """What the blocks of a request are found by: the ids that name them, else the request itself.

    A part of a named block is found by the id and how far it goes.
    """
    ids, size, named, index = request.ids, request.id_tokens, request.named, request.index

    def key(tokens: int) -> Hashable:
        if tokens > named:
            return ("own", index, tokens)
        place = (tokens - 1) // size
        return (ids[place], tokens - place * size)

    return key
