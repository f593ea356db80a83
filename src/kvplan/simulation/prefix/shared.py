"""The tree of beginnings as rows: what at least two requests have, and what sharing it saves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kvplan.simulation.prefix.prompts import Prompts
from kvplan.simulation.prefix.tree import Node, Tree

TOLD = 64  # rows that are told: those that save most, and what leads to them


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedRow:
    """``tokens`` from ``start`` on that ``requests`` prompts have behind an equal beginning.

    Computed once, it saves ``saved_tokens``. ``text`` is how it begins, or its ids.
    """

    depth: int
    start: int
    tokens: int
    requests: int
    saved_tokens: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """Rows in the order of the tree, each under the one it continues; ``num_rows`` are all."""

    rows: tuple[SharedRow, ...]
    num_rows: int


def shared_of(prompts: Prompts, tree: Tree) -> Shared:
    """What at least two requests share."""
    nodes = list(tree.nodes(prompts.units_per_token))
    chosen = dearest(
        [depth for depth, _ in nodes],
        [(node.end - node.start) * (node.requests - 1) for _, node in nodes],
        TOLD,
    )
    rows = [_row(prompts, *nodes[index]) for index in chosen]
    return Shared(rows=tuple(rows), num_rows=len(nodes))


def _row(prompts: Prompts, depth: int, node: Node) -> SharedRow:
    owner = prompts.rows[node.owner]
    start, end = prompts.token_at(node.start), prompts.token_at(node.end)
    if prompts.are_blocks:
        end = min(end, owner.tokens)  # the last block of a prompt is seldom full
    return SharedRow(
        depth=depth,
        start=start,
        tokens=end - start,
        requests=node.requests,
        saved_tokens=(end - start) * (node.requests - 1),
        text=prompts.shown(owner, node.start) if node.start < len(owner.units) else "",
    )


def dearest(depths: Sequence[int], saving: Sequence[int], most: int) -> list[int]:
    """At most so many rows in order: those that save most, with all that they stand under."""
    kept: set[int] = set()
    for index in sorted(range(len(saving)), key=saving.__getitem__, reverse=True):
        above = {index, *_ancestors(depths, index, kept)}
        if len(kept | above) > most:
            break
        kept |= above
    return sorted(kept)


def _ancestors(depths: Sequence[int], index: int, kept: set[int]) -> list[int]:
    """The rows that a row stands under, up to one that is kept: its own are kept too."""
    found, depth = [], depths[index]
    for above in range(index - 1, -1, -1):
        if depth == 0:
            break
        if depths[above] < depth:
            found.append(above)
            depth = depths[above]
            if above in kept:
                break
    return found
