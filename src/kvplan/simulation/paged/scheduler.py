"""Which requests a step computes, how many tokens of each, and who gives way.

    a step   running requests first, oldest first, each as far as the token budget goes; who gets no
             block makes the newest (or least important) give way and start again
             then waiting ones, unless somebody gave way in this step

After Scheduler.schedule of vLLM's v1/core/sched/scheduler.py (0.32.0); "shortest" is no policy of
vLLM's: the waiting request with the fewest tokens first.
"""

from __future__ import annotations

import heapq
from collections import deque

from kvplan.simulation.paged.cache import Hit, PagedCache
from kvplan.simulation.paged.request import Request
from kvplan.simulation.paged.settings import PagedSettings
from kvplan.simulation.paged.states import aligned_chunk

Scheduled = dict[Request, int]  # in the order of the batch: tokens of each


class Waiting:
    """Requests that wait, in the policy's order."""

    def __init__(self, policy: str) -> None:
        self.policy = policy
        self._line: deque[Request] = deque()
        self._heap: list[tuple[float, float, int, Request]] = []

    def __len__(self) -> int:
        return len(self._line) + len(self._heap)

    def add(self, request: Request) -> None:
        """At the end, or where the policy says."""
        if self.policy == "fcfs":
            self._line.append(request)
        else:
            heapq.heappush(self._heap, self._ranked(request))

    def put_back(self, request: Request) -> None:
        """A preempted request: at the front, or where the policy says."""
        if self.policy == "fcfs":
            self._line.appendleft(request)
        else:
            self.add(request)

    def first(self) -> Request:
        """The next to be admitted; it stays."""
        return self._line[0] if self._line else self._heap[0][-1]

    def pop(self) -> Request:
        """The next to be admitted."""
        return self._line.popleft() if self._line else heapq.heappop(self._heap)[-1]

    def remove(self, requests: set[Request]) -> None:
        """Those that a step in flight has ended after they were preempted."""
        if any(request.num_preemptions for request in requests):
            self._line = deque(request for request in self._line if request not in requests)
            self._heap = [row for row in self._heap if row[-1] not in requests]
            heapq.heapify(self._heap)

    def _ranked(self, request: Request) -> tuple[float, float, int, Request]:
        rank = request.priority if self.policy == "priority" else request.num_tokens
        return (rank, request.order, request.number, request)


class Scheduler:
    """Decides one step after the other; ``settle`` tells it that a step's outputs are there."""

    def __init__(self, settings: PagedSettings) -> None:
        self.settings = settings
        self.cache = PagedCache(settings)
        self.running: list[Request] = []
        self.waiting = Waiting(settings.policy)
        self.num_preemptions = self.recomputed_tokens = self.swapped_blocks = 0
        self.queried_tokens = self.hit_tokens = 0
        self.hits: dict[Request, int] = {}  # of those that this step admitted for the first time
        self._budget = 0
        self._scheduled: Scheduled = {}
        self._gave_way = False

    def add(self, request: Request) -> None:
        """A new request waits."""
        self.waiting.add(request)

    @property
    def is_idle(self) -> bool:
        """Nobody runs and nobody waits."""
        return not self.running and not len(self.waiting)

    def step(self) -> Scheduled:
        """Tokens that this step computes, by request."""
        self._budget = self.settings.max_num_batched_tokens
        self._scheduled, self._gave_way = {}, False
        self.hits = {}
        self.cache.start_step()
        self._long = self._long_prefill_limit()
        self._schedule_running()
        if not self._gave_way:
            self._admit()
        scheduled = self._scheduled
        for request, tokens in scheduled.items():
            self._advance(request, tokens)
        return scheduled

    def _long_prefill_limit(self) -> int:
        """A long prefill's share of a step; alone it may have all of it."""
        alone = len(self.running) + len(self.waiting) <= 1
        return 0 if alone else self.settings.long_prefill_token_threshold

    def _schedule_running(self) -> None:
        index = 0
        while index < len(self.running) and self._budget > 0:
            request = self.running[index]
            tokens = 0 if self._is_done_in_flight(request) else self._tokens_of(request)
            if tokens == 0:
                index += 1
                continue
            before = len(self.running)
            if not self._make_room(request, tokens):
                return
            # Whoever gave way before this one moved it forward.
            index = self.running.index(request) if len(self.running) < before else index
            self._take(request, tokens)
            index += 1

    def _is_done_in_flight(self, request: Request) -> bool:
        """Its last token is scheduled already, and not known yet."""
        end = min(request.num_prompt + request.num_output, self.settings.max_model_len)
        placeholders = request.num_placeholders
        return placeholders > 0 and request.num_computed + 2 - placeholders >= end

    def _tokens_of(self, request: Request) -> int:
        tokens = request.num_tokens + request.num_placeholders - request.num_computed
        tokens = self._limited(tokens)
        tokens = min(tokens, self.settings.max_model_len - request.num_computed - 1)
        if self.settings.has_states:
            tokens = aligned_chunk(request, request.num_computed, tokens, self.settings)
        return max(tokens, 0)

    def _limited(self, tokens: int) -> int:
        if 0 < self._long < tokens:
            tokens = self._long
        return min(tokens, self._budget)

    def _make_room(self, request: Request, tokens: int) -> bool:
        """Others give way until the request has its blocks; False if it gave way itself."""
        while not self.cache.allocate(request, tokens):
            victim = self._victim()
            self.running.remove(victim)
            self._budget += self._scheduled.pop(victim, 0)
            self._preempt(victim)
            if victim is request:
                return False
        return True

    def _victim(self) -> Request:
        """The newest, or the least important of all."""
        if self.settings.policy == "priority":
            return max(self.running, key=lambda r: (r.priority, r.order))
        return self.running[-1]

    def _preempt(self, request: Request) -> None:
        if self.settings.preemption == "swap":
            self.swapped_blocks += _num_blocks(request)
            request.is_swapped = True
        else:
            request.num_computed = 0
        self.cache.free(request)
        request.num_stale = request.num_in_flight
        request.num_placeholders = 0
        request.num_preemptions += 1
        self.num_preemptions += 1
        self._gave_way = True
        self.waiting.put_back(request)

    def _take(self, request: Request, tokens: int) -> None:
        self._scheduled[request] = tokens
        self._budget -= tokens

    def _admit(self) -> None:
        stale = []
        while self._budget > 0 and len(self.waiting):
            if len(self.running) >= self.settings.max_num_seqs:
                break
            request = self.waiting.first()
            if request.num_stale:
                stale.append(self.waiting.pop())
                continue
            if not self._admitted(request):
                break
            self.running.append(self.waiting.pop())
        for request in reversed(stale):
            self.waiting.put_back(request)

    def _admitted(self, request: Request) -> bool:
        hit = None if request.is_swapped else self.cache.lookup(request)
        start = request.num_computed + (hit.num_tokens if hit else 0)
        request.junction = hit.junction if hit else request.junction
        tokens = request.num_tokens - start
        if not self.settings.chunked_prefill and tokens > self._budget:
            return False
        tokens = self._limited(tokens)
        if self.settings.has_states:
            tokens = aligned_chunk(request, start, tokens, self.settings)
        if tokens == 0 or not self._fits(request, start, tokens, hit):
            return False
        if request.num_preemptions == 0:
            self._count(request, start)
        if request.is_swapped:
            self.swapped_blocks += _num_blocks(request)
            request.is_swapped = False
        request.num_computed = start
        self._take(request, tokens)
        return True

    def _fits(self, request: Request, start: int, tokens: int, hit: Hit | None) -> bool:
        watermark = self.settings.watermark_blocks if self.running else 0
        return self.cache.allocate(
            request, tokens, hit, whole=self.settings.reserve_prompt, watermark=watermark
        )

    def _count(self, request: Request, hit_tokens: int) -> None:
        """As /metrics does: at first admissions alone (record_prefix_cache_stats)."""
        self.hits[request] = hit_tokens
        if self.settings.prefix_caching:
            self.queried_tokens += request.num_tokens
            self.hit_tokens += hit_tokens

    def _advance(self, request: Request, tokens: int) -> None:
        again = min(request.furthest, request.num_computed + tokens) - request.num_computed
        self.recomputed_tokens += max(0, again)
        request.num_computed += tokens
        request.furthest = max(request.furthest, request.num_computed)
        request.num_in_flight += tokens
        known = request.num_tokens + request.num_placeholders
        request.is_prefilling = request.num_computed < known
        if self.settings.async_scheduling and not request.is_prefilling:
            request.num_placeholders += 1

    def settle(self, scheduled: Scheduled, sampled: set[Request]) -> list[Request]:
        """A step has run and these requests have their next token; those that it ended."""
        ended = []
        for request, tokens in scheduled.items():
            request.num_in_flight -= tokens
            is_stale = request.num_stale > 0
            request.num_stale -= tokens if is_stale else 0
            if request not in sampled:
                continue
            request.num_generated += 1
            if self._is_complete(request):
                ended.append(request)
            if self.settings.async_scheduling and not is_stale:
                request.num_placeholders -= 1
                if request.tables:
                    known = request.num_computed - request.num_placeholders
                    self.cache.register(request, known)
        for request in ended:
            self.cache.free(request)
        if ended:
            gone = set(ended)
            self.running = [request for request in self.running if request not in gone]
            self.waiting.remove(gone)
        return ended

    def _is_complete(self, request: Request) -> bool:
        return (
            request.num_generated >= request.num_output
            or request.num_tokens >= self.settings.max_model_len
        )

    def check_integrity(self) -> None:
        """Running requests hold all that is held, and waiting ones nothing.

        Raises:
            AssertionError: the state is broken.
        """
        assert len(self.running) <= self.settings.max_num_seqs, "too many run"
        assert len(set(self.running)) == len(self.running), "one runs twice"
        self.cache.check_integrity(self.running)


def _num_blocks(request: Request) -> int:
    return sum(not block.is_null for table in request.tables for block in table.blocks)
