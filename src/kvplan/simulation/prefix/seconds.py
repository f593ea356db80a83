"""What the prompts take to compute on a card, and what that costs, with reuse and without."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kvplan.core.step import Chunk, StepCost
from kvplan.planning.fit import FitAnswer
from kvplan.planning.speed import estimate
from kvplan.simulation.prefix.answer import PrefixAnswer

HOUR_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Money for the cards over the time of the prompts alone."""

    currency: str
    per_hour: float
    without_reuse: float
    with_reuse: float
    reordered: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Seconds:
    """Of the requests that count, each computed alone: an estimate with its relative error."""

    without_reuse_s: float
    with_reuse_s: float
    reordered_s: float | None
    error: float
    source: str
    cost: Spent | None


def seconds_of(fitted: FitAnswer, answer: PrefixAnswer) -> Seconds | None:
    """By the estimate of a plan's speed; None where the weights or the card are not known."""
    found = estimate(fitted.plan)
    if found is None or not found.computes:
        return None
    prompts, moved = answer.lengths, answer.reordered
    without = _total_s(found.cost, prompts, [0] * len(prompts))
    reused = _total_s(found.cost, prompts, answer.counted(answer.reused))
    other = None
    if moved is not None:
        other = _total_s(found.cost, prompts, answer.counted(moved.reused))
    return Seconds(
        without_reuse_s=without,
        with_reuse_s=reused,
        reordered_s=other,
        error=found.error,
        source=found.cost.source,
        cost=_spent(fitted, without, reused, other),
    )


def _spent(fitted: FitAnswer, without: float, reused: float, other: float | None) -> Spent | None:
    """At the price of the cards; None where there is none."""
    cost = fitted.cost
    if cost is None:
        return None
    second = cost.per_hour / HOUR_S
    return Spent(
        currency=cost.currency,
        per_hour=cost.per_hour,
        without_reuse=without * second,
        with_reuse=reused * second,
        reordered=None if other is None else other * second,
    )


def _total_s(cost: StepCost, prompts: Sequence[int], reused: Sequence[int]) -> float:
    return sum(
        cost.seconds((), [Chunk(hit, prompt - hit)])
        for prompt, hit in zip(prompts, reused, strict=True)
        if prompt > hit
    )
