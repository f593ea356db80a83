"""The cost of every step that a shape can take, at some rates."""

from __future__ import annotations

from typing import Final

from kvplan.core.step import AttentionCost, Knot, StepCost
from kvplan.planning.speed.ideal import Ideal
from kvplan.planning.speed.rates import Rates
from kvplan.planning.speed.terms import fixed_s, linear_s, pair_s, read_s, sequence_s

# New tokens of a step at which its cost is worked out; between them it is all but straight.
KNOTS: Final = (1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256, 384, 512, 1024, 2048, 8192)


def step_cost(ideal: Ideal, rates: Rates, source: str) -> StepCost:
    """What any step of one replica takes at these rates."""
    stages = ideal.stages
    return StepCost(
        fixed_s=fixed_s(ideal, rates),
        sequence_s=sequence_s(ideal, rates),
        linear=tuple(
            Knot(round(tokens * stages), linear_s(ideal, rates, tokens * stages))
            for tokens in KNOTS
        ),
        attention=tuple(
            AttentionCost(
                window=look.window,
                read_s=read_s(look, rates, stages),
                pair_s=pair_s(look, rates, stages),
            )
            for look in ideal.looks
        ),
        source=source,
    )
