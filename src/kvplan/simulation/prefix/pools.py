"""A pool of so many blocks under requests that come one after the other.

    fifo      the block that came first goes first
    lru       the block that was used longest ago; a request's blocks are touched from the last to
              the first, so that its end goes before its beginning (as vLLM releases them)
    optimum   the block whose next use is farthest away: no policy that keeps whole blocks and is
              told the future has more hits. A ceiling, not a policy

A hit is a block of the unbroken run from a prompt's first block on.
"""

from __future__ import annotations

import heapq
from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

Row = Sequence[int]


class Rows(Protocol):
    """Requests as rows of block ids, by their place."""

    def __len__(self) -> int:
        """How many there are."""
        ...

    def __getitem__(self, index: int, /) -> Row:
        """One of them."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolHits:
    """Tokens that were there, of those of the requests that count."""

    policy: str
    blocks: int
    hit_tokens: int
    prompt_tokens: int

    @property
    def hit_rate(self) -> float:
        """Their share."""
        return self.hit_tokens / self.prompt_tokens if self.prompt_tokens else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """Requests as rows of block ids; ``tokens(hits, i)`` are those of i's first ``hits`` blocks.

    The first ``warm_up`` requests fill the pool and do not count.
    """

    rows: Rows
    tokens: Callable[[int, int], int]
    prompt_tokens: Sequence[int]
    warm_up: int = 0

    def hits(self, policy: str, blocks: int) -> PoolHits:
        """What a policy reuses in a pool of so many blocks."""
        return self.counted(policy, blocks, POLICIES[policy](self.rows, blocks))

    def counted(self, policy: str, blocks: int, hits: Iterator[int]) -> PoolHits:
        """The tokens of the hits of each request, of those that count."""
        found = enumerate(hits)
        return PoolHits(
            policy=policy,
            blocks=blocks,
            hit_tokens=sum(self.tokens(each, i) for i, each in found if i >= self.warm_up),
            prompt_tokens=sum(self.prompt_tokens[self.warm_up :]),
        )


def _run(row: Row, held: object) -> int:
    """How many leading blocks are held."""
    for place, block in enumerate(row):
        if block not in held:  # type: ignore[operator]
            return place
    return len(row)


def lru(rows: Rows, blocks: int) -> Iterator[int]:
    """Hits of each request."""
    held: OrderedDict[int, None] = OrderedDict()
    for index in range(len(rows)):
        row = rows[index]
        yield _run(row, held)
        for block in reversed(row):
            if block in held:
                held.move_to_end(block)
            else:
                held[block] = None
        while len(held) > blocks:
            held.popitem(last=False)


def fifo(rows: Rows, blocks: int) -> Iterator[int]:
    """Hits of each request; a block that is there keeps its place in the queue."""
    held: OrderedDict[int, None] = OrderedDict()
    for index in range(len(rows)):
        row = rows[index]
        yield _run(row, held)
        for block in row if blocks else ():
            if block not in held:
                if len(held) >= blocks:
                    held.popitem(last=False)
                held[block] = None


def optimum(rows: Rows, blocks: int) -> Iterator[int]:
    """Hits of each request: Belady's rule, a block that is never used again not kept at all.

    A block is used whenever one behind it is, so its next use is never later: of equal ones the
    deepest goes first, and what is held stays whole beginnings.
    """
    never = len(rows)
    held: dict[int, int] = {}
    heap: list[tuple[int, int, int]] = []
    for index, uses in enumerate(_next_uses(rows)):
        row = rows[index]
        yield _run(row, held)
        for depth, block in enumerate(row):
            use = uses[depth]
            if use != never:
                held[block] = use
                heapq.heappush(heap, (-use, -depth, block))
            elif block in held:
                del held[block]
        while len(held) > blocks:
            use, _, block = heapq.heappop(heap)
            if held.get(block) == -use:
                del held[block]


def _next_uses(rows: Rows) -> list[array[int]]:
    """For each block of each request the next request that has it; their number where none has."""
    later: dict[int, int] = {}
    never = len(rows)
    found: list[array[int]] = []
    for index in range(len(rows) - 1, -1, -1):
        row = rows[index]
        found.append(array("i", [later.get(block, never) for block in row]))
        for block in row:
            later[block] = index
    return found[::-1]


POLICIES: dict[str, Callable[[Rows, int], Iterator[int]]] = {
    "fifo": fifo,
    "lru": lru,
    "optimum": optimum,
}
