"""The winner is the cheapest there is: nothing in the space is cheaper and meets the goals."""

from __future__ import annotations

from itertools import pairwise

import pytest

from kvplan.planning.advise.outcome import Outcome, least
from kvplan.planning.advise.search import search
from tests.planning.advise.spaces import drawn, every

SEEDS = range(48)


def cost(one: Outcome) -> float:
    """What ranks: money, or cards where none has a price."""
    return float(one.gpus) if one.per_hour is None else one.per_hour


@pytest.mark.parametrize("seed", SEEDS)
def test_no_brute_force_is_cheaper(seed: int) -> None:
    """Every candidate on every number of replicas: none that meets the goals costs less."""
    space, goal = drawn(seed)
    best = min(search(space, goal).outcomes, key=lambda one: one.order, default=None)
    meeting = [one for one in every(space, goal) if one.meets]
    priced = [one for one in meeting if one.per_hour is not None] or meeting

    assert bool(meeting) == (best is not None and best.meets)
    if best is not None and best.meets:
        assert min(map(cost, priced)) == pytest.approx(cost(best))


def test_goals_bind_and_do_not() -> None:
    """Of the drawn goals some are met and some are not, so that both are tested."""
    met = [any(one.meets for one in search(*drawn(seed)).outcomes) for seed in SEEDS]

    assert 10 < sum(met) < len(met) - 5


@pytest.mark.parametrize("seed", SEEDS[:12])
def test_more_replicas_never_serve_worse(seed: int) -> None:
    """What the halving rests on: held, first token and time per token fall with replicas."""
    space, goal = drawn(seed)
    by_candidate: dict[int, list[Outcome]] = {}
    for one in every(space, goal):
        by_candidate.setdefault(id(one.sized), []).append(one)
    for outcomes in by_candidate.values():
        served = [one.served for one in outcomes if one.served is not None]
        for fewer, more in pairwise(served):
            assert more.held <= fewer.held
            assert more.tpot_s <= fewer.tpot_s * 1.001
            assert more.ttft_s <= fewer.ttft_s * 1.001


def test_the_least_is_the_first_that_meets() -> None:
    """One replica less misses a goal that replicas serve."""
    space, goal = drawn(3)
    for one in search(space, goal).outcomes:
        if one.meets and one.replicas > 1:
            fewer = least(one.sized, goal)
            assert fewer.replicas == one.replicas
