"""How fast the card itself lets a model go: no byte read twice, no unit idle that could work.

A bound and no prediction: kernels follow one another, each as fast as memory or multipliers allow.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from kvplan.core.device import Device
from kvplan.core.step import StepCost
from kvplan.engines.base import EnginePlan
from kvplan.planning.speed.card import Card, card_of
from kvplan.planning.speed.cut import Placed, placed
from kvplan.planning.speed.ideal import Ideal, ideal_of
from kvplan.planning.speed.rates import IDEAL
from kvplan.planning.speed.shape import Shape, shape_of
from kvplan.planning.speed.steps import step_cost

SOURCE: Final = "bound: bandwidth and dense peak"
_CARDS: dict[tuple[int, int | None], tuple[Device, Card | None]] = {}


class Work(NamedTuple):
    """A plan's step: its shape on its card, and the copies that step on their own."""

    shape: Shape
    card: Card
    ideal: Ideal
    replicas: int


def work_of(plan: EnginePlan, bandwidth: int | None = None) -> Work | None:
    """What a step of a plan has to do; None where its weights or its bandwidth are not known.

    ``bandwidth`` is the card's in bytes a second, in place of its table's.
    """
    card = _card(plan.node.device, bandwidth)
    if card is None:
        return None
    found: Placed = placed(plan)
    shape = shape_of(plan.model, found.cut)
    if shape is None:
        return None
    return Work(shape, card, ideal_of(shape, card), found.replicas)


def bound(plan: EnginePlan, bandwidth: int | None = None) -> StepCost | None:
    """The least that any step of one replica takes; None where a rate is not known."""
    work = work_of(plan, bandwidth)
    return None if work is None else step_cost(work.ideal, IDEAL, SOURCE)


def _card(device: Device, bandwidth: int | None) -> Card | None:
    """One object a device, so that what is remembered of it is found again."""
    key = (id(device), bandwidth)
    found = _CARDS.get(key)
    if found is not None and found[0] is device:
        return found[1]
    if len(_CARDS) > 1024:
        _CARDS.clear()
    card = card_of(device, bandwidth)
    _CARDS[key] = (device, card)
    return card
