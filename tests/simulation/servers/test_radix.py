"""SGLang's tree: what is found, what goes first, what may not go."""

from __future__ import annotations

import pytest

from kvplan.core.errors import UnknownName
from kvplan.simulation.servers.base import Segment, segments
from kvplan.simulation.servers.radix import RadixTree
from tests.simulation.servers.cases import request


def key(text: str) -> list[Segment]:
    """A token a letter."""
    return [Segment(letter, 1) for letter in text]


def test_insert_says_what_was_there() -> None:
    """The example at the end of radix_cache.py: shared beginnings are kept once."""
    tree = RadixTree()
    there = [tree.insert(key(text)) for text in ("abc", "abc", "abde", "abdefg", "hijkl")]
    tree.check_integrity()

    assert [0, 3, 2, 4, 0] == there
    assert 12 == tree.total  # ab c de fg hijkl


@pytest.mark.parametrize(
    ("asked", "found"), [("abdz", 3), ("abdefgh", 6), ("b", 0), ("hi", 2), ("", 0)]
)
def test_the_longest_prefix_is_found(asked: str, found: int) -> None:
    """Also where it ends inside an edge; looking changes nothing."""
    tree = RadixTree()
    for text in ("abc", "abdefg", "hijkl"):
        tree.insert(key(text))
    nodes = tree.total

    assert found == tree.peek(key(asked)) == tree.match(key(asked)).tokens
    tree.check_integrity()
    assert nodes == tree.total


@pytest.mark.parametrize(
    ("strategy", "left"),
    [
        ("lru", {"ab": 2, "cd": 2, "ef": 0}),  # ab and cd were looked at after ef
        ("lfu", {"ab": 2, "cd": 2, "ef": 0}),
        ("fifo", {"ab": 0, "cd": 2, "ef": 2}),
        ("filo", {"ab": 2, "cd": 2, "ef": 0}),
    ],
)
def test_the_strategy_says_who_goes(strategy: str, left: dict[str, int]) -> None:
    """One leaf of three goes for one token, and it goes whole."""
    tree = RadixTree(strategy)
    for text in ("ab", "cd", "ef"):
        tree.insert(key(text))
    for text in ("cd", "ab"):
        tree.match(key(text))

    assert 2 == tree.evict(1)
    tree.check_integrity()
    assert left == {text: tree.peek(key(text)) for text in left}


def test_leaves_go_before_what_they_hang_on() -> None:
    """The shared part goes last, though nobody asked for it in between."""
    tree = RadixTree()
    tree.insert(key("abcd"))
    tree.insert(key("abef"))

    assert [2, 2, 2, 0] == [tree.evict(1) for _ in range(4)]


def test_a_locked_path_stays() -> None:
    """Eviction takes what no request holds, and no more than there is."""
    tree = RadixTree()
    tree.insert(key("abcd"))
    tree.insert(key("abef"))
    node = tree.match(key("abcd")).node
    tree.lock(node)
    tree.check_integrity()

    assert (2, 4) == (tree.evictable, tree.locked)
    assert 2 == tree.evict(100)
    tree.unlock(node)
    assert 4 == tree.evict(100)
    assert 0 == tree.total


def test_a_split_keeps_the_lock() -> None:
    """A node that is locked and then split is locked in both parts."""
    tree = RadixTree()
    tree.insert(key("abcd"))
    tree.lock(tree.match(key("abcd")).node)
    tree.match(key("ab"))
    tree.check_integrity()

    assert 0 == tree.evict(4)


def test_an_unknown_strategy_lists_the_known() -> None:
    with pytest.raises(UnknownName, match="lru, lfu, fifo, filo"):
        RadixTree("random")


@pytest.mark.parametrize(
    ("tokens", "page", "expected"),
    [
        (10, 1, [(7, 4), (8, 4), (9, 2)]),  # the prompt's last block ends with it
        (9, 1, [(7, 4), (8, 4)]),  # a part of a named block is nobody's
        (13, 1, [(7, 4), (8, 4), (9, 2), (("own", 0, 10), 3)]),
        (13, 4, [(7, 4), (8, 4), (("own", 0, 8), 4)]),
        (3, 4, []),
    ],
)
def test_segments(tokens: int, page: int, expected: list[tuple[object, int]]) -> None:
    """A prompt of ten tokens in blocks of four, and the answer after it."""
    asked = request(0, 10, 5, ids=[7, 8, 9], block=4)

    assert expected == [tuple(segment) for segment in segments(asked, tokens, page)]


def test_own_tokens_are_cut_where_they_were() -> None:
    """So that what a request left in the tree is found by itself again."""
    asked = request(0, 10, 5)
    asked.cuts = [4, 10]

    assert [4, 6, 2] == [segment.tokens for segment in segments(asked, 12)]
