"""Where nothing meets the goals: which one to relax, to what, and what would meet the rest then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from kvplan.planning.advise.candidate import Sized
from kvplan.planning.advise.goal import Goal
from kvplan.planning.advise.outcome import (
    BUDGET,
    CARDS,
    TPOT,
    TTFT,
    Outcome,
    meeting,
    outcome,
)

USERS: Final = "--users"
RATE: Final = "--rate"
NEAREST: Final = 48  # candidates that fewer users are tried on
MOST_CARDS: Final = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Relaxed:
    """One goal set to ``needed`` and the cheapest outcome that meets all of them then.

    ``together`` marks goals of which none is enough alone: all of them have to give way.
    """

    goal: str
    asked: float
    needed: float
    outcome: Outcome
    together: bool = False

    def to_dict(self) -> dict[str, Any]:
        """A row of the JSON's ``relax``."""
        candidate = self.outcome.sized.candidate
        return {
            "goal": self.goal,
            "asked": self.asked,
            "needed": self.needed,
            "together": self.together,
            "gpu": candidate.device.name,
            "gpus": self.outcome.gpus,
            "cost_per_hour": self.outcome.per_hour,
        }


def relaxed(outcomes: list[Outcome], goal: Goal) -> list[Relaxed]:
    """Each goal that alone stands in the way, the one that has to give way least first; else those
    that the nearest misses, together.
    """
    able = (one for one in outcomes if one.sized.load is not None)
    ordered = sorted(able, key=lambda one: one.order)
    found = [one for one in _each(ordered, goal) if one is not None]
    if not found:
        return list(_together(ordered, goal))
    return sorted(found, key=lambda one: abs(one.needed / one.asked - 1) if one.asked else 0.0)


def _each(ordered: list[Outcome], goal: Goal) -> Iterator[Relaxed | None]:
    planned = [one.sized for one in ordered]
    if goal.ttft_s is not None:
        yield _time(planned, goal, TTFT, goal.ttft_s, replace(goal, ttft_s=None))
    if goal.tpot_s is not None:
        yield _time(planned, goal, TPOT, goal.tpot_s, replace(goal, tpot_s=None))
    if goal.budget_per_hour is not None:
        free = replace(goal, budget_per_hour=None)
        best = _best(planned, free)
        if best is not None and best.per_hour is not None:
            yield Relaxed(
                goal=BUDGET,
                asked=goal.budget_per_hour,
                needed=best.per_hour,
                outcome=best,
            )
    if goal.max_gpus < MOST_CARDS:
        best = _best(planned, replace(goal, max_gpus=MOST_CARDS))
        if best is not None:
            yield Relaxed(goal=CARDS, asked=goal.max_gpus, needed=best.gpus, outcome=best)
    yield _fewer(planned[:NEAREST], goal)


def _together(nearest_first: list[Outcome], goal: Goal) -> Iterator[Relaxed]:
    """What the nearest needs of each goal that it misses."""
    nearest = next(iter(nearest_first), None)
    if nearest is None or nearest.served is None:
        return
    served = nearest.served
    reached = {
        TTFT: (goal.ttft_s, served.ttft_s),
        TPOT: (goal.tpot_s, served.tpot_s),
        BUDGET: (goal.budget_per_hour, nearest.per_hour),
    }
    for miss in nearest.misses:
        asked, needed = reached.get(miss.goal, (None, None))
        if asked is not None and needed is not None:
            yield Relaxed(
                goal=miss.goal, asked=asked, needed=needed, outcome=nearest, together=True
            )


def _time(planned: list[Sized], goal: Goal, name: str, asked: float, free: Goal) -> Relaxed | None:
    """The least time that is reached while the other goals are met.

    More replicas are faster: of each candidate that meets the rest, as many as the other goals
    allow.
    """
    best: tuple[float, Outcome] | None = None
    for one in planned:
        found = meeting(one, free)
        if found is None or not found.meets:
            continue
        found = _widest(one, free, found)
        assert found.served is not None
        value = found.served.ttft_s if name == TTFT else found.served.tpot_s
        if (
            best is None
            or value < best[0] * 0.995
            or (value <= best[0] and _cheaper(found, best[1]))
        ):
            best = (value, found)
    if best is None:
        return None
    least_time, found = best
    # The cheapest that reaches it, give or take a hundredth.
    wide = 1.01 * (1 + found.sized.error if goal.sure else 1.0)
    goal = replace(
        free,
        ttft_s=least_time * wide if name == TTFT else free.ttft_s,
        tpot_s=least_time * wide if name == TPOT else free.tpot_s,
    )
    cheapest = _best(planned, goal) or found
    return Relaxed(goal=name, asked=asked, needed=least_time, outcome=cheapest)


def _widest(one: Sized, free: Goal, found: Outcome) -> Outcome:
    """On as many replicas as cards and budget allow."""
    most = free.max_gpus // one.cards
    if one.rate is not None and free.budget_per_hour is not None and one.rate.per_gpu_hour:
        most = min(most, int(free.budget_per_hour / (one.rate.per_gpu_hour * one.cards)))
    wider = outcome(one, free, max(found.replicas, most))
    return wider if wider.meets else found


def _cheaper(one: Outcome, other: Outcome) -> bool:
    return one.merit < other.merit


def _fewer(candidates: list[Sized], goal: Goal) -> Relaxed | None:
    """The most users, or the highest rate, for which something meets all goals."""
    name, asked = (USERS, float(goal.users)) if goal.users else (RATE, goal.rate_per_s or 0.0)
    best = _most(lambda part: _best(candidates, _part(goal, part)), goal)
    if best is None:
        return None
    part, found = best
    return Relaxed(goal=name, asked=asked, needed=_amount(goal, part), outcome=found)


def _most(tried: Callable[[float], Outcome | None], goal: Goal) -> tuple[float, Outcome] | None:
    """The largest part of the traffic that is met, by halving."""
    low, high, found = 0.0, 1.0, None
    for _ in range(10):
        middle = (low + high) / 2
        one = tried(middle)
        if one is None:
            high = middle
        else:
            low, found = middle, (middle, one)
        if goal.users and _amount(goal, low) + 1 >= _amount(goal, high):
            break
    return found


def _part(goal: Goal, part: float) -> Goal:
    if goal.users:
        return replace(goal, users=int(_amount(goal, part)))
    return replace(goal, rate_per_s=_amount(goal, part))


def _amount(goal: Goal, part: float) -> float:
    return float(max(1, int(goal.users * part))) if goal.users else (goal.rate_per_s or 0.0) * part


def _best(planned: list[Sized], goal: Goal) -> Outcome | None:
    """The cheapest that meets a goal."""
    found = [one for x in planned if (one := meeting(x, goal)) is not None and one.meets]
    return min(found, key=lambda one: one.order, default=None)
