"""A radix tree of cached prefixes, as SGLang keeps it: tokens on edges, leaves evicted first.

    root ── [system prompt] ──┬── [question A] ── [answer A]        lock_ref counts the requests
                              └── [question B]                      that run on a path
    evictable: nodes that no request locks; a leaf goes whole, then its parent is a leaf

sglang/srt/mem_cache/radix_cache.py (0.5): match_prefix and insert split a node where a match ends
inside it, refresh the time of what they pass, and evict pops leaves in the order of a strategy
(evict_policy.py). Tokens come in segments that are shared whole, the finest that traffic can tell.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kvplan.core.errors import UnknownName
from kvplan.simulation.servers.base import Segment


@dataclass(slots=True, eq=False)
class Node:
    """The segments of one edge; ``used`` and ``made`` are ticks of the tree's own clock."""

    parent: Node | None
    key: list[Segment]
    made: int
    used: int
    hits: int = 0
    locks: int = 0
    children: dict[Segment, Node] = field(default_factory=dict)

    @property
    def tokens(self) -> int:
        """Tokens of the edge."""
        return sum(segment.tokens for segment in self.key)


class Match(NamedTuple):
    """The longest cached prefix: its tokens, and the node where it ends."""

    tokens: int
    node: Node


# sglang/srt/mem_cache/evict_policy.py: the least goes first. None of these ever falls for a node,
# so that an entry of the heap that is out of date is never too late.
STRATEGIES: Final[dict[str, Callable[[Node], tuple[int, ...]]]] = {
    "lru": lambda node: (node.used,),
    "lfu": lambda node: (node.hits, node.used),
    "fifo": lambda node: (node.made,),
    "filo": lambda node: (-node.made,),
}


class RadixTree:
    """Cached prefixes; ``evictable`` and ``locked`` tokens together are all that it holds."""

    def __init__(self, strategy: str = "lru") -> None:
        if strategy not in STRATEGIES:
            raise UnknownName("eviction policy", strategy, hint=f"Known: {', '.join(STRATEGIES)}.")
        self._order = STRATEGIES[strategy]
        self._clock = 0
        self._serial = 0
        self._leaves: list[tuple[tuple[int, ...], int, Node]] = []  # of some nodes out of date
        self.root = Node(None, [], 0, 0, locks=1)
        self.evictable = 0
        self.locked = 0

    def match(self, key: Sequence[Segment]) -> Match:
        """The longest prefix of ``key``; a node in which it ends is split there."""
        return self._walk(key, self._tick())

    def peek(self, key: Sequence[Segment]) -> int:
        """Tokens of the longest prefix; nothing is touched."""
        node, place, found = self.root, 0, 0
        while place < len(key) and (child := node.children.get(key[place])) is not None:
            same = _common(child.key, key, place)
            found += sum(segment.tokens for segment in child.key[:same])
            place += same
            if same < len(child.key):
                break
            node = child
        return found

    def insert(self, key: Sequence[Segment]) -> int:
        """Adds what is not there yet: the tokens that were there already."""
        now = self._tick()
        there = self._walk(key, now)
        place = _segments_of(key, there.tokens)
        if place < len(key):
            node = Node(there.node, list(key[place:]), now, now)
            there.node.children[key[place]] = node
            self.evictable += node.tokens
            self._may_go(node)
        return there.tokens

    def lock(self, node: Node) -> None:
        """Protects the path to a node."""
        for step in _upwards(node):
            if not step.locks:
                self.evictable -= step.tokens
                self.locked += step.tokens
            step.locks += 1

    def unlock(self, node: Node) -> None:
        """Takes one protection of the path back."""
        for step in _upwards(node):
            step.locks -= 1
            if not step.locks:
                self.evictable += step.tokens
                self.locked -= step.tokens
                self._may_go(step)

    def evict(self, tokens: int) -> int:
        """Drops unlocked leaves, whole, until so many tokens are free or none is left."""
        freed = 0
        while freed < tokens and self._leaves:
            order, _, node = heapq.heappop(self._leaves)
            parent = node.parent
            if parent is None or not _is_free_leaf(node):
                continue
            if order != self._order(node):
                self._may_go(node)
                continue
            del parent.children[node.key[0]]
            node.parent = None
            freed += node.tokens
            self._may_go(parent)
        self.evictable -= freed
        return freed

    @property
    def total(self) -> int:
        """Tokens that it holds."""
        return self.evictable + self.locked

    def check_integrity(self) -> None:
        """The sums are those of the nodes; a child is never locked more than its parent."""
        nodes = list(self._nodes())
        evictable = sum(node.tokens for node in nodes if not node.locks)
        locked = sum(node.tokens for node in nodes if node.locks)
        assert (evictable, locked) == (self.evictable, self.locked), f"{evictable} + {locked}"
        for node in nodes:
            parent = node.parent
            assert parent is not None
            assert node.key, "an edge without tokens"
            assert parent.children[node.key[0]] is node, "a child under another's key"
            assert parent is self.root or parent.locks >= node.locks, "a path locked in part"

    def _walk(self, key: Sequence[Segment], now: int) -> Match:
        """Down the tree as far as ``key`` goes, the passed nodes refreshed."""
        node, place, found = self.root, 0, 0
        while place < len(key) and (child := node.children.get(key[place])) is not None:
            child.used = now
            child.hits += 1
            same = _common(child.key, key, place)
            node = child if same == len(child.key) else self._split(child, same)
            found += node.tokens
            place += same
            if node is not child:
                break
        return Match(found, node)

    def _split(self, child: Node, at: int) -> Node:
        """A new node over ``child`` with its first ``at`` segments, its locks and its time."""
        parent = child.parent
        assert parent is not None
        upper = Node(parent, child.key[:at], child.made, child.used, child.hits, child.locks)
        parent.children[upper.key[0]] = upper
        child.key = child.key[at:]
        child.parent = upper
        upper.children[child.key[0]] = child
        return upper

    def _nodes(self) -> Iterator[Node]:
        stack = list(self.root.children.values())
        while stack:
            node = stack.pop()
            yield node
            stack.extend(node.children.values())

    def _may_go(self, node: Node) -> None:
        """Notes a node that eviction may take, if it is one."""
        if node is not self.root and _is_free_leaf(node):
            self._serial += 1
            heapq.heappush(self._leaves, (self._order(node), self._serial, node))

    def _tick(self) -> int:
        self._clock += 1
        return self._clock


def _common(edge: Sequence[Segment], key: Sequence[Segment], place: int) -> int:
    """Leading segments of an edge that ``key`` has from ``place``."""
    same = 0
    most = min(len(edge), len(key) - place)
    while same < most and edge[same] == key[place + same]:
        same += 1
    return same


def _segments_of(key: Sequence[Segment], tokens: int) -> int:
    """How many leading segments have so many tokens."""
    place = 0
    while tokens > 0:
        tokens -= key[place].tokens
        place += 1
    return place


def _upwards(node: Node) -> Iterator[Node]:
    """A node and those above it, without the root."""
    step: Node | None = node
    while step is not None and step.parent is not None:
        yield step
        step = step.parent


def _is_free_leaf(node: Node) -> bool:
    return not node.children and not node.locks
