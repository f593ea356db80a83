"""Speculative decoding: tokens a step for a stated acceptance, and what drafting costs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from kvplan.core.step import Knot, StepCost
from kvplan.engines.base import EnginePlan

DRAFT_TOKENS = ("--speculative-num-draft-tokens", "--speculative-num-steps")


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafting:
    """``tokens`` drafted a step, each accepted with probability ``acceptance`` if all before it
    were; ``share`` is a drafting pass's cost as a part of the model's own step.
    """

    tokens: int
    acceptance: float
    share: float

    @property
    def tokens_a_step(self) -> float:
        """Accepted tokens and the one that the model adds: 1 + a + a² + … + aᵏ."""
        return sum(self.acceptance**power for power in range(self.tokens + 1))


def drafted(cost: StepCost, drafting: Drafting) -> StepCost:
    """The cost of a step that drafts and checks, by sequences instead of tokens.

    Checking takes tokens + 1 new tokens of each sequence through the weights, and reads its cache
    once; each drafting pass is a part of a step of one token.
    """
    each = drafting.tokens + 1
    passes = 1 + drafting.tokens * drafting.share
    checked = tuple(
        Knot(
            knot.tokens,
            cost.linear_s(knot.tokens * each) + drafting.tokens * drafting.share * knot.seconds,
        )
        for knot in cost.linear
    )
    return replace(
        cost,
        fixed_s=cost.fixed_s * passes,
        sequence_s=cost.sequence_s * each,
        linear=checked,
        attention=tuple(replace(group, read_s=group.read_s * passes) for group in cost.attention),
        source=f"{cost.source}; {drafting.tokens} drafts accepted with {drafting.acceptance:g}",
    )


def drafting_of(plan: EnginePlan, acceptance: float | None) -> Drafting | None:
    """The drafting that a plan's flags ask for; None without an acceptance or without drafts."""
    if acceptance is None:
        return None
    tokens, layers = _draft(plan)
    if not tokens:
        return None
    depth = max(1, len(plan.model.blocks))
    return Drafting(tokens=tokens, acceptance=acceptance, share=layers / depth)


def _draft(plan: EnginePlan) -> tuple[int, int]:
    """Tokens and layers of the draft."""
    settings: Any = getattr(plan, "settings", None)
    draft = getattr(settings, "draft", None)
    if draft is not None:
        return draft.tokens, draft.layers
    if getattr(settings, "draft_tokens", 0):
        # SGLang counts the model's own token among its draft tokens.
        return max(0, settings.draft_tokens - 1), getattr(settings, "draft_layers", 0)
    return 0, 0
