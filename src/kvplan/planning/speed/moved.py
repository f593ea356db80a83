"""What a new token moves through memory beside the products of matrices.

    a norm        reads the sum of the layers before, and writes it and what it makes of it
    a product     its result is read once more: rotated, gated, added
    a gate        writes what the next product reads
    experts       every drawn one returns a row of the hidden size
    fewer bits    what is multiplied in 8 or 4 bits is read in 16 and written so first

A rank of a tensor-parallel group holds whole rows of the hidden size and its part of the rest. What
an engine fuses moves less, which is for the rates to say; a bound leaves all of it out.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kvplan.core import weights as w
from kvplan.core.weights import Weight

SIXTEEN: Final = 2
NORMS: Final = 2  # a block: before attention and before the network
OF_A_NORM: Final = 3  # rows of the hidden size: read, written, made
NARROWED: Final = 3  # bytes of an element read in 16 bits and written in 8
NOT_PRODUCTS: Final = frozenset({
    w.EMBEDDING, w.POSITION, w.HEAD, w.TOWER, w.PROJECTOR, w.ENCODER, w.CODEC,
})  # fmt: skip
FROM_GATES: Final = frozenset({w.MLP_OUT, w.STATE_OUT, w.EXPERT_OUT})


def dense_bytes(tensors: Iterable[Weight], hidden: int, blocks: int, *, narrow: bool) -> float:
    """Bytes of one token on a rank that has these tensors of all blocks, experts apart.

    ``narrow`` where they are multiplied in fewer than 16 bits.
    """
    elements = float(NORMS * OF_A_NORM * hidden * blocks)
    inputs = float(NORMS * hidden * blocks)
    for weight in tensors:
        if weight.cols == 1 or weight.role in NOT_PRODUCTS:
            continue
        elements += weight.rows * weight.copies
        if weight.role in FROM_GATES:
            elements += weight.cols * weight.copies
        if weight.role in FROM_GATES or weight.role == w.OUTPUT:
            inputs += weight.cols * weight.copies
    return elements * SIXTEEN + (inputs * NARROWED if narrow else 0.0)


def expert_bytes(tensors: Iterable[Weight], ranks: int, *, dealt: bool, narrow: bool) -> float:
    """Bytes of one token of the group on one of ``ranks`` that share all experts.

    Dealt out, a rank has its part of a token's experts; cut, it has its part of each of them, and
    every one returns a whole row.
    """
    inner = returned = 0.0
    for weight in tensors:
        drawn = weight.copies if weight.active < 0 else weight.active
        inner += (weight.cols if weight.role in FROM_GATES else weight.rows) * drawn
        if weight.role in FROM_GATES:
            returned += weight.rows * drawn
    returned /= ranks if dealt else 1
    inner /= ranks
    return (inner + returned) * SIXTEEN + (inner * NARROWED if narrow else 0.0)
