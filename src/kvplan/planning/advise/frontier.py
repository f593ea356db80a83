"""Cost against latency: the outcomes that no other beats in both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kvplan.planning.advise.goal import Goal
from kvplan.planning.advise.outcome import BUDGET, TPOT, TTFT, Outcome, outcome

DOUBLINGS = 3


def frontier(outcomes: Iterable[Outcome], goal: Goal) -> list[Outcome]:
    """Those that hold the traffic, the cheapest first, each with less time per token than all that
    cost less. Time per token and money do not bind here, as the frontier shows what they cost; the
    first token does where anything is in time.
    """
    held = [one for one in outcomes if _is_priced(one) and _holds(one)]
    timely = [one for one in held if _is_timely(one)]
    first = undominated(timely or held)
    more = [x for one in first for x in _wider(one, goal) if _holds(x)]
    return undominated([*first, *(x for x in more if not timely or _is_timely(x))])


def undominated(found: Iterable[Outcome]) -> list[Outcome]:
    """No other is as cheap and as fast."""
    kept: list[Outcome] = []
    for one in sorted(found, key=_place):
        assert one.served is not None
        if not kept or one.served.tpot_s < _tpot(kept[-1]):
            kept.append(one)
    return kept


def _place(one: Outcome) -> tuple[float, float, float]:
    assert one.served is not None
    return one.per_hour or 0.0, one.served.tpot_s, one.served.ttft_s


def _tpot(one: Outcome) -> float:
    assert one.served is not None
    return one.served.tpot_s


def _wider(one: Outcome, goal: Goal) -> Iterator[Outcome]:
    """The same on twice, four and eight times as many replicas."""
    for doubling in range(1, DOUBLINGS + 1):
        replicas = one.replicas << doubling
        if replicas * one.sized.cards > goal.max_gpus:
            return
        yield outcome(one.sized, goal, replicas)


def _is_priced(one: Outcome) -> bool:
    return one.per_hour is not None


def _is_timely(one: Outcome) -> bool:
    return not any(miss.goal == TTFT for miss in one.misses)


def _holds(one: Outcome) -> bool:
    return one.served is not None and all(miss.goal in (TTFT, TPOT, BUDGET) for miss in one.misses)
