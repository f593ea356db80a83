"""Requests on one replica by the cost of its steps: how many run at once, how long they wait.

    S(n)   a decode step of n sequences half way through their answers
    W      what the prompt of a request adds to the steps that compute it
    O      tokens of an answer

    a request takes  W  of its own, and O steps that n sequences share; so with n in flight they
    come and go at

        λ(n) = n / (O · S(n) + n · W)            tokens every  S(n) / (1 − λW)  =  S(n) + n W / O

    users      n = users, or less by their pauses:   n + λ (pause + first token) = users
    rate       the n at which λ(n) is the rate; none where λ never reaches it

Prompts queue for the step's token budget: a queue of Poisson arrivals and fixed work, whose waits
have an exponential tail. Ranks in lock step wait for each other: one's prompt slows all.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

from kvplan.core.step import Chunk, StepCost, pairs
from kvplan.planning.advise.goal import Goal, Traffic
from kvplan.planning.speed.batching import Batching

STEPS: Final = 60
CLOSE: Final = 1e-6  # of the upper end
MOST_RUNNING: Final = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What one replica does with its part of the traffic; times at the goal's percentile.

    ``running`` is the mean number in flight and ``held`` what has to fit at once; ``rate_per_s``
    are its requests a second. ``warm_ttft_s`` is of a request whose history is cached.
    """

    ttft_s: float
    warm_ttft_s: float
    tpot_s: float
    running: float
    held: int
    rate_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """One replica: its steps, how prompts go into them, its stages, and what fits.

    ``most`` are the sequences that fit, over all ranks in lock step.
    """

    cost: StepCost
    batching: Batching
    stages: int
    most: int


class Load:
    """A traffic on a replica; every rate is of one rank of a lock-step group."""

    def __init__(self, replica: Replica, traffic: Traffic, goal: Goal) -> None:
        self.cost, self.most, self.stages = replica.cost, replica.most, replica.stages
        self.batching, self.ranks = replica.batching, replica.batching.group
        self.budget = max(1, replica.batching.budget)
        self.traffic, self.goal = traffic, goal
        self.z = NormalDist().inv_cdf(goal.percentile)
        # One part of the traffic is asked of again and again by the search and what it relaxes.
        self._works: dict[tuple[float, float], float] = {}
        self._users: dict[float, Served] = {}
        self._arrivals: dict[float, Served | None] = {}
        context = traffic.mean_tokens
        self.each_s = replica.cost.sequence_s + sum(
            group.read_s * (context if group.window is None else min(context, group.window))
            for group in replica.cost.attention
        )
        self.prompt_s = self.work(traffic.fresh_tokens, traffic.prompt_tokens)

    def step_s(self, running: float) -> float:
        """A decode step of so many sequences on a rank."""
        n = max(running, 1.0)
        low, high = math.floor(n), math.ceil(n)
        at = self.cost.linear_s(low)
        if high > low:
            at += (self.cost.linear_s(high) - at) * (n - low)
        return self.cost.fixed_s + at + n * self.each_s

    def work(self, fresh: float, prompt: float) -> float:
        """What computing ``fresh`` tokens at a prompt's end adds to steps that run anyway, or takes
        in steps of its own where prompts go apart.
        """
        found = self._works.get((fresh, prompt))
        if found is None:
            found = self._works[fresh, prompt] = self._work(fresh, prompt)
        return found

    def _work(self, fresh: float, prompt: float) -> float:
        new = max(1, round(fresh))
        chunk = Chunk(max(0, round(prompt) - new), new)
        seen = sum(group.pair_s * pairs(chunk, group.window) for group in self.cost.attention)
        whole, rest = divmod(new, self.budget)
        through = whole * self._chunk_s(self.budget) + (self._chunk_s(rest) if rest else 0.0)
        return seen + through + self.cost.sequence_s

    def _chunk_s(self, tokens: int) -> float:
        if self.batching.apart:
            return self.cost.fixed_s + self.cost.linear_s(tokens)
        return self.cost.linear_s(tokens + 1) - self.cost.linear_s(1)

    def rate(self, running: float) -> float:
        """Requests a second of a rank with so many in flight."""
        steps = self.traffic.output_tokens * self.step_s(running)
        return running / (steps + running * self.prompt_s * self.batching.held_up)

    def slowed(self, rate: float) -> float:
        """The share of time that prompts take of steps: any rank's in a lock-step group."""
        return min(rate * self.prompt_s * self.batching.held_up, 1 - 1e-9)

    def users(self, users: float) -> Served:
        """So many requests in flight on the replica, less those that pause."""
        if users not in self._users:
            self._users[users] = self._of_users(users)
        return self._users[users]

    def _of_users(self, users: float) -> Served:
        here = users / self.ranks
        pause = self.goal.think_s
        if pause <= 0:
            return self._served(here, self.rate(here), math.ceil(users), 0.0, users)
        active = rising_root(lambda x: x + self.rate(x) * pause, here, here)
        spread = math.sqrt(max(0.0, active * (1 - active / here)))
        return self._served(active, self.rate(active), math.ceil(users), spread, users)

    def arrivals(self, rate: float) -> Served | None:
        """Requests that come at a rate to the replica; None where it never keeps up."""
        if rate not in self._arrivals:
            self._arrivals[rate] = self._of_arrivals(rate)
        return self._arrivals[rate]

    def _of_arrivals(self, rate: float) -> Served | None:
        here, most = (
            rate / self.ranks,
            float(min(self.most / self.ranks + 1, MOST_RUNNING)),
        )
        if self.rate(most) < here:
            return None
        running = rising_root(self.rate, here, most)
        spread = math.sqrt(running)
        held = math.ceil((running + self.z * spread) * self.ranks)
        return self._served(running, here, held, spread, math.inf)

    def _served(
        self, running: float, rate: float, held: int, spread: float, population: float
    ) -> Served:
        """The times with ``running`` in flight on a rank, give or take ``spread``.

        ``population`` are the users that there are: one of them waits for the others alone.
        """
        most = max(1.0, running + self.z * spread)
        step = self.step_s(most)
        output = self.traffic.output_tokens
        own = running * self.ranks / max(population, 1.0) * self.prompt_s / output
        tpot = max(step, step / (1 - self.slowed(rate)) - own)
        others = max(0.0, population - 1) / population if math.isfinite(population) else 1.0
        met = rate * self.ranks * output * tpot * others  # prompts of others during one answer
        unlucky = self.z * math.sqrt(met) * self.prompt_s / output
        waits = self._waits(rate, step, max(0.0, population - 1))
        return Served(
            ttft_s=self._first(self.traffic.judged_tokens, step, waits, rate),
            warm_ttft_s=self._first(self.traffic.warm_tokens, step, waits, rate),
            tpot_s=tpot + min(unlucky, running * self.ranks * self.prompt_s / output),
            running=running * self.ranks,
            held=held,
            rate_per_s=rate * self.ranks,
        )

    def _waits(self, rate: float, step: float, others: float) -> float:
        """The percentile of the wait for a place in a step's budget, behind ``others`` at most."""
        service = self.prompt_s + min(1.0, self.traffic.fresh_tokens / self.budget) * step
        busy = min(rate * service, 0.999)
        rare = 1 - self.goal.percentile
        if busy <= rare:
            return 0.0
        mean = busy * service / (2 * (1 - busy))
        waited = mean / busy * math.log(busy / rare)
        return min(waited, others * service)

    def _first(self, fresh: float, step: float, waits: float, rate: float) -> float:
        """From arrival to the first token: the wait, the prompt's steps, half a step under way.

        The cost of a step counts stages as all busy; a prompt's first part has to pass them one
        after the other before they are.
        """
        chunks = math.ceil(fresh / self.budget)
        whole = max(self.traffic.prompt_tokens, fresh)
        # Decodes of others go on in the same steps.
        shared = step if rate > 0 else self.cost.fixed_s + self.cost.linear_s(1)
        shared = 0.0 if self.batching.apart else shared
        more = self.stages - 1
        filling = more * self.work(min(fresh, self.budget), whole) if more else 0.0
        own = chunks * shared + self.work(fresh, whole) + filling
        return waits + own + step / 2 + self.batching.way.seconds(whole)


def rising_root(value: Callable[[float], float], wanted: float, high: float) -> float:
    """Where a rising function reaches ``wanted`` between 0 and ``high``, from above; ``high`` where
    it does not.

    False position, the end that stays halved in weight (Illinois): a smooth curve takes six steps.
    """
    low, below, above = 0.0, -wanted, value(high) - wanted
    if above <= 0:
        return high
    near, side = CLOSE * high, 0
    for _ in range(STEPS):
        if high - low <= near:
            break
        middle = (low * above - high * below) / (above - below)
        at = value(middle) - wanted
        if at >= 0:
            if high - middle <= near and at <= CLOSE * wanted:
                return middle
            high, above = middle, at
            below = below / 2 if side > 0 else below
            side = 1
        else:
            low, below = middle, at
            above = above / 2 if side < 0 else above
            side = -1
    return high
