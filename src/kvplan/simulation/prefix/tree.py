"""The tree of beginnings: an edge is a run of units that all prompts below it have.

    root ─ "You are a helpful " ─┬─ "lawyer. …"     2 requests
                                 └─ "cook. …" ─┬─ "Soup?"
                                               └─ "Cake?"

A row is a prompt, its edges are slices of it; a child is found by the unit that it begins with.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Units = NDArray[Any]

FIRST_LOOK = 64  # units that are compared before the rest of a long edge is


@dataclass(slots=True, eq=False)
class Node:
    """The edge that ends here is ``units[start:end]`` of row ``owner``; ``requests`` pass it."""

    owner: int
    units: Units
    start: int
    end: int
    requests: int = 0
    parent: Node | None = None
    children: dict[int, Node] = field(default_factory=dict)


class Parting(NamedTuple):
    """A prompt left the tree at ``node``, after ``position`` units, though both go on.

    ``other`` is the row that went there first.
    """

    node: Node
    position: int
    row: int
    other: int


class Found(NamedTuple):
    """How many units of a prompt the tree has, and where the prompt left it, if it did."""

    length: int
    parting: Parting | None


def common_length(a: Units, b: Units) -> int:
    """How many leading units are equal."""
    import numpy as np

    most, look, done = min(len(a), len(b)), FIRST_LOOK, 0
    while done < most:
        end = min(most, done + look)
        apart = np.flatnonzero(a[done:end] != b[done:end])
        if len(apart):
            return done + int(apart[0])
        done, look = end, look * 8
    return most


class Tree:
    """Grows by whole prompts; each is looked up before it is added."""

    def __init__(self, empty: Units) -> None:
        self.root = Node(-1, empty, 0, 0)

    def add(self, row: int, prompt: Units, kept: Units) -> Found:
        """Look a prompt up, then keep it with its answer.

        Invariant: ``kept`` begins with ``prompt``.
        """
        self.root.requests += 1
        node, at = self.root, 0
        while at < len(kept):
            child = node.children.get(int(kept[at]))
            if child is None:
                parting = self._parting(node, at, row, prompt)
                leaf = Node(row, kept, at, len(kept), int(at < len(prompt)), node)
                node.children[int(kept[at])] = leaf
                return Found(min(at, len(prompt)), parting)
            same = common_length(child.units[child.start : child.end], kept[at:])
            node = child if same == child.end - child.start else _split(node, child, same)
            node.requests += at < len(prompt)
            at += same
        return Found(len(prompt), None)

    @staticmethod
    def _parting(node: Node, at: int, row: int, prompt: Units) -> Parting | None:
        if not node.children or at >= len(prompt):
            return None
        first = next(iter(node.children.values()))
        return Parting(node, at, row, first.owner)

    def nodes(self, shortest: int = 1) -> Iterator[tuple[int, Node]]:
        """Depths and nodes that two requests or more pass, each before those below it.

        An edge of fewer than ``shortest`` units is left out, and its children stand in its place.
        """
        stack = [(0, child) for child in reversed(self.root.children.values())]
        while stack:
            depth, node = stack.pop()
            if node.requests < 2:
                continue
            told = node.end - node.start >= shortest
            if told:
                yield depth, node
            stack += [(depth + told, child) for child in reversed(node.children.values())]


def _split(parent: Node, child: Node, same: int) -> Node:
    """Cut an edge after ``same`` units; the upper part, which all of its requests pass."""
    upper = Node(
        child.owner,
        child.units,
        child.start,
        child.start + same,
        child.requests,
        parent,
    )
    parent.children[int(child.units[child.start])] = upper
    child.start += same
    child.parent = upper
    upper.children[int(child.units[child.start])] = child
    return upper
