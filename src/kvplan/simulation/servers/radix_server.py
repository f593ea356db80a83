"""Caches in a radix tree of pages: what a request holds, and where every token of the pool is.

    free + tree.evictable + tree.locked + Σ own = capacity

A request holds a path of the tree, which is locked, and pages of its own. What it computes enters
the tree; what another put there meanwhile is kept once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from kvplan.core.units import round_up
from kvplan.simulation.servers.base import Request, Segment, Server, segments
from kvplan.simulation.servers.host import HostTier
from kvplan.simulation.servers.radix import Node, RadixTree


@dataclass(slots=True)
class Held:
    """What a request holds: the node that it locks, tokens on that path, and pages of its own."""

    node: Node
    shared: int = 0
    own: int = 0


@dataclass(slots=True, kw_only=True)
class RadixServer(Server):
    """A server whose cache is such a tree; without ``reuse`` nothing is found in it."""

    tokens: int
    page: int = 1
    eviction: str = "lru"
    reuse: bool = True
    host: HostTier | None = None
    tree: RadixTree = field(init=False)
    free: int = field(init=False)
    held: dict[Request, Held] = field(default_factory=dict)
    loading: int = 0  # tokens that this step loads from host memory

    def __post_init__(self) -> None:
        self.tree = RadixTree(self.eviction)
        self.free = self.tokens

    @property
    def num_blocks(self) -> int:
        """Pages of the pool."""
        return self.tokens // self.page

    @property
    def used_blocks(self) -> int:
        """Pages on locked paths and the requests' own."""
        own = sum(held.own for held in self.held.values())
        return (self.tree.locked + own) // self.page

    def cached_tokens(self, request: Request) -> int:
        """What the tree would give it."""
        return self.reusable(request, self.tree.peek(self.key(request, request.prompt)))

    def reusable(self, request: Request, found: int) -> int:
        """Of so many found tokens those that spare work: the last known one never does."""
        return min(found, (request.known - 1) // self.page * self.page)

    def check_integrity(self) -> None:
        """Every token of the pool is in one place."""
        self.tree.check_integrity()
        own = sum(held.own for held in self.held.values())
        total = self.free + self.tree.total + own
        assert total == self.tokens, (
            f"{self.free} free + {self.tree.total} in the tree + {own} own != {self.tokens}"
        )
        assert self.free >= 0, "more tokens than the pool has"
        if self.host is not None:
            self.host.check_integrity()

    def key(self, request: Request, tokens: int) -> list[Segment]:
        """What the first ``tokens`` of a request are found by."""
        return segments(request, tokens, self.page) if self.reuse else []

    def sought(self, request: Request) -> list[Segment]:
        """What a request looks for: as far as a hit can spare work (schedule_batch.py,
        init_next_round_input), to the end of the segment where that ends.
        """
        most, key = self.reusable(request, request.known), self.key(request, request.known)
        ends = accumulate(segment.tokens for segment in key)
        return [part for part, end in zip(key, ends, strict=True) if end - part.tokens < most]

    def start(self, request: Request, hit: int, node: Node) -> None:
        """The request holds what it found, and counts it if it is new."""
        self.held[request] = Held(node, hit)
        from_host = self.in_host(request, hit)
        request.computed = hit + from_host
        # What it once put behind them is gone, and may be cut elsewhere when it comes again.
        request.cuts = [cut for cut in request.cuts if cut <= request.computed]
        self.loading += from_host
        self.counts.host_hit_tokens += from_host
        if not request.preemptions:
            request.hit = hit + from_host
            self.counts.queried_tokens += request.prompt
            self.counts.hit_tokens += request.hit
            self.admitted.append(request)

    def in_host(self, request: Request, hit: int) -> int:
        """Tokens behind a hit that host memory has."""
        if self.host is None:
            return 0
        key, place, there = self.key(request, request.known), 0, 0
        while place < len(key) and there < hit:
            there += key[place].tokens
            place += 1
        found = hit + self.host.find(key[place:]) if there == hit else hit
        return self.reusable(request, found) - hit if found > hit else 0

    def take_loading(self) -> float:
        """Seconds that the loads of this step take."""
        seconds = self.host.seconds(self.loading) if self.host is not None else 0.0
        self.loading = 0
        self.counts.moved_s += seconds
        return seconds

    def decoded(self, requests: Sequence[Request], steps: int, spare: int = 0) -> None:
        """So many tokens of each, its pages taken step by step, as eviction is.

        Each step evicts for what it needs, then for ``spare`` tokens. The page of the planned step
        is there already: ``own`` reaches one token further.
        """
        page = self.page
        due = [0] * page
        for request in requests:
            # The step after s more tokens needs a page where computed + s is a multiple of it.
            due[-request.computed % page] += 1
        for step in range(1, steps + 1):
            need = page * due[step % page]
            self.make_free(need)
            self.make_free(spare)
            self.free -= need
        for request in requests:
            held = self.held[request]
            request.computed += steps
            request.generated += steps
            held.own = round_up(request.known, page) - held.shared

    def compute(self, request: Request, length: int) -> None:
        """A chunk is computed and enters the tree."""
        self.counts.computed_tokens += length
        if request.preemptions:
            self.counts.recomputed_tokens += length
        request.computed += length
        self.keep(request)

    def grow(self, request: Request, tokens: int) -> None:
        """Pages for the first ``tokens`` of a request, evicting where none are free."""
        held = self.held[request]
        more = round_up(tokens, self.page) - held.shared - held.own
        if more <= 0:
            return
        if self.free < more:
            self.evict(more)
        self.free -= more
        held.own += more

    def make_free(self, tokens: int) -> None:
        """Evicts so many where fewer are free (evict_from_tree_cache)."""
        if self.free < tokens:
            self.evict(tokens)

    def evict(self, tokens: int) -> None:
        """Frees what nobody holds, a node at a time, until so many tokens are free more."""
        freed = self.tree.evict(tokens)
        self.free += freed
        self.counts.evicted_blocks += freed // self.page

    def keep(self, request: Request) -> None:
        """A chunk enters the tree and its path is locked (cache_unfinished_req).

        What another request put there meanwhile is one copy: this one's is freed.
        """
        key = self.key(request, request.computed)
        held = self.held[request]
        there = self.tree.insert(key)
        total = sum(segment.tokens for segment in key)
        request.cuts.append(total)
        if self.host is not None:
            self.host.store(key)
        node = self.tree.match(key).node if key else self.tree.root
        self.tree.lock(node)
        self.tree.unlock(held.node)
        self._own_to_tree(held, there, total)
        held.node = node
        held.shared = max(held.shared, total)

    def _own_to_tree(self, held: Held, there: int, total: int) -> None:
        """Tokens from ``held.shared`` to ``total`` are the tree's now; those already there free."""
        if total > held.shared:
            twice = max(0, there - held.shared)
            self.free += twice
            held.own -= total - held.shared

    def release(self, request: Request, *, keep: bool) -> None:
        """A request leaves; its tokens stay in the tree, or are freed (cache_finished_req)."""
        held = self.held.pop(request)
        if keep:
            key = self.key(request, request.computed)
            there = self.tree.insert(key)
            self._own_to_tree(held, there, sum(segment.tokens for segment in key))
        self.free += held.own
        self.tree.unlock(held.node)
        request.computed = 0
