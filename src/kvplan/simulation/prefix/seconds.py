"""What the prompts take to compute on a card, with what is reused and without."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kvplan.core.step import Chunk, StepCost
from kvplan.engines.base import EnginePlan
from kvplan.planning.speed import estimate
from kvplan.simulation.prefix.answer import PrefixAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class Seconds:
    """Of the requests that count, each computed alone: an estimate with its relative error."""

    without_reuse_s: float
    with_reuse_s: float
    reordered_s: float | None
    error: float
    source: str


def seconds_of(plan: EnginePlan, answer: PrefixAnswer) -> Seconds | None:
    """By the estimate of a plan's speed; None where the weights or the card are not known."""
    found = estimate(plan)
    if found is None:
        return None
    prompts, moved = answer.lengths, answer.reordered
    return Seconds(
        without_reuse_s=_total_s(found.cost, prompts, [0] * len(prompts)),
        with_reuse_s=_total_s(found.cost, prompts, answer.counted(answer.reused)),
        reordered_s=None
        if moved is None
        else _total_s(found.cost, prompts, answer.counted(moved.reused)),
        error=found.error,
        source=found.cost.source,
    )


def _total_s(cost: StepCost, prompts: Sequence[int], reused: Sequence[int]) -> float:
    return sum(
        cost.seconds((), [Chunk(hit, prompt - hit)])
        for prompt, hit in zip(prompts, reused, strict=True)
        if prompt > hit
    )
