"""What the prompts take to compute on a card, with what is reused and without."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kvplan.core.errors import BadValue
from kvplan.core.step import Chunk, StepCost
from kvplan.planning.fit import fit
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


def seconds_of(asked: dict[str, Any], answer: PrefixAnswer) -> Seconds:
    """By the estimate of a plan's speed.

    Raises:
        BadQuestion: a model or card that is not known, or whose speed cannot be told.
    """
    found = estimate(fit(**asked).plan)
    if found is None:
        raise BadValue(
            "The time of a prompt cannot be told: the weights or the card are not known.",
            "Leave --gpu out, or name a card that kvplan gpus lists.",
        )
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
