"""A candidate on so many replicas against the goal: what it does, what it costs, what it misses."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kvplan.core.units import format_seconds
from kvplan.planning.advise.candidate import Sized
from kvplan.planning.advise.goal import Goal
from kvplan.planning.advise.load import Served

TTFT: Final = "--ttft"
TPOT: Final = "--tpot"
BUDGET: Final = "--budget"
SIMULATED: Final = "--simulate"
CARDS: Final = "--max-gpus"
NEVER: Final = math.inf
# Between two of one cost the checkpoint that was changed less, in the formats that are published.
CHANGED: Final = {"16 bits": 0.0, "mxfp4": 1.0, "fp8": 1.0, "int8": 1.3, "nvfp4": 1.5}
MOST_CHANGED: Final = 1.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Miss:
    """A goal that is not met: by how much, and a sentence's part that says it."""

    goal: str
    ratio: float
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A candidate on ``replicas``; ``served`` is one replica's part, None where it cannot serve."""

    sized: Sized
    goal: Goal
    replicas: int
    served: Served | None
    misses: tuple[Miss, ...]

    @property
    def gpus(self) -> int:
        """All cards."""
        return self.replicas * self.sized.cards

    @property
    def sequences(self) -> int:
        """Sequences of the sized length that fit in all replicas."""
        return self.replicas * self.sized.sequences

    @property
    def meets(self) -> bool:
        """Whether every goal is met."""
        return not self.misses

    @property
    def per_hour(self) -> float | None:
        """The cost of all cards; None where no price is known."""
        rate = self.sized.rate
        return None if rate is None else rate.per_hour(self.gpus)

    @property
    def is_tight(self) -> bool:
        """Whether a time would miss its goal at the upper end of the estimate's band."""
        served, goal, wide = self.served, self.goal, 1 + self.sized.error
        if served is None:
            return False
        pairs = ((served.ttft_s, goal.ttft_s), (served.tpot_s, goal.tpot_s))
        return any(most is not None and value * wide > most for value, most in pairs)

    @property
    def order(self) -> tuple[float, ...]:
        """The better is the less: goals met (the worst miss, then all together, to the two digits
        that estimates hold), then merit.
        """
        ratios = [miss.ratio for miss in self.misses]
        return (_two_digits(max(ratios, default=0.0)), _two_digits(sum(ratios)), *self.merit)

    @property
    def merit(self) -> tuple[float, ...]:
        """Whatever the goals, the better is the less: cost (cards where no price is known), room to
        the goals, formats that change the answers, cards, pace.
        """
        cost = self.per_hour
        candidate = self.sized.candidate
        variant = candidate.variant
        changed = variant.made * 2 + CHANGED.get(variant.stored, MOST_CHANGED)
        served = self.served
        return (
            float(cost is None),
            float(self.gpus) if cost is None else cost,
            float(self.is_tight),
            changed + candidate.small_cache + candidate.squeezed / 2,
            self.gpus,
            served.tpot_s if served else NEVER,
        )


def _two_digits(value: float) -> float:
    return float(f"{value:.2g}")


def outcome(sized: Sized, goal: Goal, replicas: int) -> Outcome:
    """What so many replicas do."""
    if sized.load is None:
        miss = Miss(goal="memory", ratio=NEVER, said=sized.why or "it does not start")
        return Outcome(sized=sized, goal=goal, replicas=replicas, served=None, misses=(miss,))
    served = _served(sized, goal, replicas)
    misses = _misses(sized, goal, served, replicas)
    return Outcome(sized=sized, goal=goal, replicas=replicas, served=served, misses=tuple(misses))


def _served(sized: Sized, goal: Goal, replicas: int) -> Served | None:
    assert sized.load is not None
    if goal.rate_per_s is not None:
        return sized.load.arrivals(goal.rate_per_s / replicas)
    return sized.load.users((goal.users or 1) / replicas)


def _misses(sized: Sized, goal: Goal, served: Served | None, replicas: int) -> list[Miss]:
    if served is None:
        return [Miss(goal=CARDS, ratio=NEVER, said=_cannot_keep_up(sized, goal, replicas))]
    found = []
    if served.held > sized.sequences:
        wanted = served.held * replicas if goal.users is None else goal.users
        said = (
            f"holds {sized.sequences * replicas:,} of {wanted:,} sequences of "
            f"{sized.load.traffic.sized_tokens:,} tokens"
            if sized.load
            else ""
        )
        found.append(Miss(goal=CARDS, ratio=2 * served.held / sized.sequences, said=said))
    at = f"p{goal.percentile * 100:g}"
    wide = 1 + sized.error if goal.sure else 1.0
    at += f" (× {wide:.2f})" if goal.sure else ""
    for name, value, most, what in (
        (TTFT, served.ttft_s, goal.ttft_s, "first token"),
        (TPOT, served.tpot_s, goal.tpot_s, "time per token"),
    ):
        if most is not None and value * wide > most:
            said = f"{what} {format_seconds(value)} at {at}, over {format_seconds(most)}"
            found.append(Miss(goal=name, ratio=value * wide / most, said=said))
    cost, budget = _cost(sized, replicas), goal.budget_per_hour
    if budget is not None and cost is None:
        found.append(Miss(goal=BUDGET, ratio=NEVER, said="no price of it is listed (--price)"))
    elif cost is not None and budget is not None and cost > budget:
        said = f"{cost:,.2f} an hour, over {budget:,.2f}"
        found.append(Miss(goal=BUDGET, ratio=cost / max(budget, 1e-9), said=said))
    return found


def _cost(sized: Sized, replicas: int) -> float | None:
    rate = sized.rate
    return None if rate is None else rate.per_hour(sized.cards * replicas)


def _cannot_keep_up(sized: Sized, goal: Goal, replicas: int) -> str:
    assert sized.load is not None
    most = sized.load.rate(sized.sequences / sized.load.ranks) * sized.load.ranks * replicas
    return f"serves {most:.3g} of {goal.rate_per_s or 0:.3g} requests a second"


def least(sized: Sized, goal: Goal) -> Outcome:
    """The fewest replicas that meet what replicas can do for it, else those that hold the traffic.

    Fewer requests on a replica are held more easily and served sooner: what is met by some number
    is met by every larger one, so halving finds the least. The budget binds no search: the least
    is the cheapest.
    """
    meets = meeting(sized, goal)
    if meets is not None:
        return meets
    most = max(1, goal.max_gpus // sized.cards)
    if sized.load is None or sized.cards > goal.max_gpus:
        return outcome(sized, goal, 1)
    holds = _least(
        lambda n: outcome(sized, goal, n), most, lambda one: _only(one, TTFT, TPOT, BUDGET)
    )
    return holds or outcome(sized, goal, most)


def meeting(sized: Sized, goal: Goal) -> Outcome | None:
    """The fewest replicas that meet all but the budget; None where no number does."""
    if sized.load is None or sized.cards > goal.max_gpus:
        return None
    most = max(1, goal.max_gpus // sized.cards)
    return _least(lambda n: outcome(sized, goal, n), most, lambda one: _only(one, BUDGET))


def _only(one: Outcome, *goals: str) -> bool:
    return all(miss.goal in goals for miss in one.misses)


def _least(
    tried: Callable[[int], Outcome], most: int, holds: Callable[[Outcome], bool]
) -> Outcome | None:
    found = tried(most)
    if not holds(found):
        return None
    first = tried(1) if most > 1 else found
    if holds(first):
        return first
    low, high = 1, most
    while high - low > 1:
        middle = (low + high) // 2
        one = tried(middle)
        if holds(one):
            high, found = middle, one
        else:
            low = middle
    return found
