"""Which blocks are on which card, and which in host memory.

    blocks        0 … start │ start … L, output
    memory        host      │ cards, in proportion

src/llama-model.cpp (b11434), load_tensors: layers go to the cards from the back; the output layer
is one of ``--n-gpu-layers`` since the automatic fit, and the one after the last before it. A block
goes to the first card whose share of the layers, summed up, is above its place.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from typing import NamedTuple

from kvplan.core.errors import BadValue


class Slice(NamedTuple):
    """Blocks from ``first`` up to ``end``, and whether the output layer is with them."""

    first: int
    end: int
    output: bool = False

    @property
    def blocks(self) -> int:
        """How many."""
        return self.end - self.first


class Placement(NamedTuple):
    """What host memory and each card holds."""

    host: Slice
    cards: tuple[Slice, ...]

    @property
    def offloaded(self) -> int:
        """Layers on the cards, the output layer counted."""
        return sum(card.blocks + card.output for card in self.cards)


def place(
    blocks: int, layers: int, shares: tuple[float, ...], *, output_is_layer: bool
) -> Placement:
    """The placement of ``layers`` layers on cards with some shares.

    Args:
        blocks: of the model.
        layers: ``--n-gpu-layers``; more than there are is all.
        shares: of the cards.
        output_is_layer: whether the output layer is the first of them.
    """
    on_cards = min(layers, blocks + 1)
    start = max(blocks + 1 - layers, 0) if output_is_layer else max(blocks - layers, 0)
    if on_cards <= 0:
        return Placement(Slice(0, blocks, True), (Slice(blocks, blocks),) * len(shares))
    whole = sum(shares)
    ends = [total / whole for total in accumulate(shares)]
    # The output layer counts as the block after the last.
    inside = range(start, min(blocks + 1, start + on_cards))
    owners = [min(bisect_right(ends, (il - start) / on_cards), len(shares) - 1) for il in inside]
    cards = []
    for card in range(len(shares)):
        held = [il for il, owner in zip(inside, owners, strict=True) if owner == card]
        first, end = (held[0], held[-1] + 1) if held else (blocks, blocks)
        cards.append(Slice(first, min(end, blocks), end == blocks + 1))
    return Placement(Slice(0, start, not any(card.output for card in cards)), tuple(cards))


def shares_of(
    cards: int, split: tuple[float, ...] | None, mode: str, main: int
) -> tuple[float, ...]:
    """The cards' proportions; equal free memory where none are given.

    Raises:
        BadValue: more proportions than cards, or a main card that is not there.
    """
    if mode == "none":
        if main >= cards:
            raise BadValue(f"--main-gpu {main} is not one of {cards} cards, counted from 0.")
        return tuple(float(card == main) for card in range(cards))
    if split is None:
        return (1.0,) * cards
    if len(split) > cards and any(split[cards:]):
        raise BadValue(
            f"--tensor-split names {len(split)} cards, and there are {cards}.",
            f"Pass --gpus {len(split)}, or {cards} proportions.",
        )
    return (*split[:cards], *(0.0,) * (cards - len(split)))
