"""Policies in a pool: a real trace's published figures, and what must hold of any rows."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kvplan
from kvplan.simulation.prefix.pools import POLICIES, fifo, lru, optimum
from tests.simulation.traces.files import CONVERSATION

# Of the trace's last half of requests, as kvcache-simulator 0.1.3 says of the same file.
PUBLISHED = {
    (409, "fifo"): 4.3191, (409, "lru"): 4.5433, (409, "optimum"): 12.6472,
    (1638, "fifo"): 5.0884, (1638, "lru"): 5.2017, (1638, "optimum"): 24.5369,
    (6553, "fifo"): 14.3082, (6553, "lru"): 15.3046, (6553, "optimum"): 38.6007,
    (26214, "fifo"): 29.0048, (26214, "lru"): 32.9995, (26214, "optimum"): 39.8113,
}  # fmt: skip
CEILING = 39.8113


def test_a_conversation_trace() -> None:
    """Three policies in pools of four sizes, and a pool without end."""
    answer = kvplan.prefix(
        CONVERSATION, engine="none", warm_up=0.5, pool_blocks=[409, 1638, 6553, 26214]
    )
    found = {(row.blocks, row.policy): round(100 * row.hit_rate, 4) for row in answer.pools}

    assert PUBLISHED == found
    assert CEILING == round(100 * answer.hit_rate, 4)


@pytest.mark.parametrize(
    ("policy", "blocks", "expected"),
    [
        ("fifo", 2, [0, 1, 0, 1, 0, 0, 0]),
        ("lru", 2, [0, 1, 0, 1, 0, 1, 0]),
        ("optimum", 2, [0, 1, 0, 1, 0, 1, 1]),
        ("lru", 3, [0, 1, 0, 1, 0, 1, 1]),
        ("lru", 0, [0, 0, 0, 0, 0, 0, 0]),
    ],
)
def test_by_hand(policy: str, blocks: int, expected: list[int]) -> None:
    """Requests of one block each: A A B A C A B."""
    assert expected == [*POLICIES[policy]([[1], [1], [2], [1], [3], [1], [2]], blocks)]


def test_an_end_goes_before_its_beginning() -> None:
    """A pool that is too small for a request keeps its first blocks."""
    assert [0, 2] == [*lru([[1, 2, 3], [1, 2, 3]], 2)]


ROWS = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=4), min_size=1, max_size=8)


def chained(rows: list[list[int]]) -> list[list[int]]:
    """Blocks whose id says what came before them."""
    names: dict[tuple[int, ...], int] = {}
    return [
        [names.setdefault(tuple(row[: end + 1]), len(names)) for end in range(len(row))]
        for row in rows
    ]


@settings(deadline=None)
@given(ROWS, st.integers(0, 8))
def test_none_beats_the_optimum(rows: list[list[int]], blocks: int) -> None:
    """And none has more than a pool without end."""
    blocked = chained(rows)
    best = sum(optimum(blocked, blocks))

    assert sum(lru(blocked, blocks)) <= best
    assert sum(fifo(blocked, blocks)) <= best <= sum(lru(blocked, 10**6))


@settings(deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=2), min_size=1, max_size=6),
    st.integers(0, 3),
)
def test_the_optimum_is_what_a_search_finds(rows: list[list[int]], blocks: int) -> None:
    """Every choice of what to keep after every request, tried."""
    blocked = chained(rows)

    assert search(blocked, blocks) == sum(optimum(blocked, blocks))


def search(rows: list[list[int]], blocks: int) -> int:
    """The most hits of any policy that keeps whole beginnings of what it has had."""
    states: dict[frozenset[int], int] = {frozenset(): 0}
    for row in rows:
        after: dict[frozenset[int], int] = {}
        for held, hits in states.items():
            run = next((i for i, block in enumerate(row) if block not in held), len(row))
            everything = sorted(held | set(row))
            for choice in product((False, True), repeat=len(everything)):
                kept = frozenset(b for b, keep in zip(everything, choice, strict=True) if keep)
                if len(kept) <= blocks:
                    after[kept] = max(after.get(kept, 0), hits + run)
        states = after
    return max(states.values())
