"""A shape on a card: the seconds that each part of a step takes at the card's peaks.

What is left to say is how much of the peaks is reached (``rates``), and the sum (``steps``).
"""

from __future__ import annotations

from collections import OrderedDict
from math import inf, log2
from typing import Final, NamedTuple

from kvplan.planning.speed.card import Card
from kvplan.planning.speed.shape import Matrices, Shape

ACTIVATION_BYTES: Final = 2.0
REDUCES_A_LAYER: Final = 2  # after attention and after the network
REMEMBERED: Final = 4096


class IdealLook(NamedTuple):
    """A context token of the layers over one window: read, computed when decoding, and computed for
    one query of a prefill.
    """

    window: int | None
    read_s: float
    decode_s: float
    pair_s: float


class Ideal(NamedTuple):
    """Seconds at the peaks. ``*_read_s`` once a step, ``*_token_s`` for each new token, and
    ``*_moved_s`` for each what lies between its products.

    ``group`` attention ranks step together, and their experts see the tokens of all; ``messages``
    counts latencies of messages in units of one between two ranks; ``stages`` are a pipeline's,
    ``hops`` between cards that work one after the other, on prompts in pieces of ``piece`` tokens;
    ``layers`` are counted by their kernels. A sum over ranks goes round once (``link_once_s``: each
    rank reads what all others have) or twice (``link_twice_s``: each adds up its part, then reads
    the others' parts), whichever is faster.
    """

    dense_read_s: float
    dense_token_s: float
    experts_read_s: float
    experts_token_s: float
    dense_moved_s: float
    experts_moved_s: float
    drawn_share: float
    head_read_s: float
    head_token_s: float
    link_once_s: float
    link_twice_s: float
    state_s: float
    messages: float
    layers: float
    mixed: float
    group: float
    stages: float
    hops: float
    piece: float
    favoured: float
    dense_kind: str
    experts_kind: str
    looks: tuple[IdealLook, ...]


_IDEALS: OrderedDict[tuple[int, int], tuple[Shape, Card, Ideal]] = OrderedDict()


def ideal_of(shape: Shape, card: Card) -> Ideal:
    """The times of a shape on a card; remembered by the two objects."""
    key = (id(shape), id(card))
    found = _IDEALS.get(key)
    if found is not None and found[0] is shape and found[1] is card:
        return found[2]
    ideal = _ideal(shape, card)
    _IDEALS[key] = (shape, card, ideal)
    while len(_IDEALS) > REMEMBERED:
        _IDEALS.popitem(last=False)
    return ideal


def _ideal(shape: Shape, card: Card) -> Ideal:
    memory, cut, experts = card.bytes_per_s, shape.cut, shape.experts
    link = card.link_bytes_per_s or inf
    drawn = experts.matrices if experts else NOTHING
    return Ideal(
        dense_read_s=shape.dense.num_bytes / memory,
        dense_token_s=_token_s(shape.dense, card),
        experts_read_s=drawn.num_bytes / memory,
        experts_token_s=_token_s(drawn, card),
        dense_moved_s=_moved_bytes(shape.dense, card) / memory,
        experts_moved_s=_moved_bytes(drawn, card) / memory,
        drawn_share=experts.drawn_share if experts else 0.0,
        head_read_s=shape.head.num_bytes / memory,
        head_token_s=_token_s(shape.head, card),
        link_once_s=_sent_bytes(shape, cut.tp - 1) / link,
        link_twice_s=_sent_bytes(shape, 2 * (cut.tp - 1) / cut.tp) / link,
        state_s=shape.state_bytes / memory,
        messages=shape.layers * REDUCES_A_LAYER * _hops(max(cut.tp, cut.lockstep)) + cut.pp - 1,
        layers=shape.launches,
        mixed=shape.mixed,
        group=cut.lockstep,
        stages=cut.pp,
        hops=cut.turns - 1,
        piece=cut.piece or inf,
        favoured=_favoured(shape),
        dense_kind=card.multiplies(shape.dense.kind),
        experts_kind=card.multiplies(drawn.kind),
        looks=tuple(
            IdealLook(
                look.window,
                look.num_bytes / memory,
                look.decode_flops * _s_per_flop(card, "16"),
                look.pair_flops * _s_per_flop(card, "16"),
            )
            for look in shape.looks
        ),
    )


NOTHING: Final = Matrices(0.0, 0.0, "16")


def _s_per_flop(card: Card, kind: str) -> float:
    """Nothing where the peak is not known: what is computed then counts as hidden."""
    peak = card.peak(kind)
    return 1 / peak if peak else 0.0


def _token_s(matrices: Matrices, card: Card) -> float:
    return 2 * matrices.parameters * _s_per_flop(card, matrices.kind)


def _moved_bytes(matrices: Matrices, card: Card) -> float:
    narrow = card.multiplies(matrices.kind) != "16"
    return matrices.narrow_bytes if narrow else matrices.moved_bytes


def _sent_bytes(shape: Shape, rows: float) -> float:
    """Bytes that a rank takes in for one new token of its own.

    ``rows`` for each sum over ranks, twice a layer. A lock-step group gathers every rank's tokens
    for the experts and returns them; a stage passes them on.
    """
    cut, row = shape.cut, shape.hidden * ACTIVATION_BYTES
    gathered = shape.mixed * 2 * (cut.lockstep - 1)
    return (shape.layers * REDUCES_A_LAYER * rows + gathered + cut.pp - 1) * row


def _favoured(shape: Shape) -> float:
    """How far whole experts, dealt out over ranks, fall to them unevenly: a step waits for the rank
    whose experts are drawn most, more so the more ranks there are. 0 where every rank has its part
    of each expert, where the router is corrected until all are drawn alike, or where an engine
    moves experts to that end.
    """
    cut, experts = shape.cut, shape.experts
    if experts is None or experts.even or cut.evened or not cut.dealt:
        return 0.0
    return 1 - 1 / max(1, cut.expert_ranks)


def _hops(ranks: int) -> float:
    """How much longer a message takes than one between two: 1, 1.5, 2 for 2, 4, 8 ranks."""
    return (1 + log2(ranks)) / 2 if ranks > 1 else 0.0
