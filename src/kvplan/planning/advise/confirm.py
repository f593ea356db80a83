"""The choice put to the simulator: the engine's own scheduler over drawn requests decides.

Outcomes are tried in their order. One whose times are over the goals there is tried again with a
replica more, behind those that are cheaper then.

    conversations      turns of TURN_TOKENS until the context is full, so many users at once
    --prompt, users    a closed loop; with pauses, requests at the rate that it comes to
    --rate             Poisson arrivals
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from kvplan.core.errors import BadValue
from kvplan.core.units import format_seconds
from kvplan.planning.advise.goal import TURN_TOKENS, Goal
from kvplan.planning.advise.outcome import Outcome, outcome
from kvplan.simulation.lengths import Distribution, Empirical
from kvplan.simulation.needed import check_installed

if TYPE_CHECKING:
    from kvplan.simulation.workload import Workload

MOST_RUNS: Final = 8
FEWEST_REQUESTS: Final = 300
MOST_REQUESTS: Final = 4000
KNOWN: Final = (50, 90, 95, 99)  # percentiles that a simulation reports
SEED: Final = 0
Progress = Callable[[int, int], None]  # requests that have ended, of how many


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """What the simulator saw of an outcome, times at ``percentile`` of requests."""

    outcome: Outcome
    requests: int
    percentile: float
    ttft_s: float
    tpot_s: float
    output_tokens_per_s: float
    hit_rate: float
    preemptions: int
    peak_usage: float
    why_not: str | None

    def to_dict(self) -> dict[str, Any]:
        """A row of the JSON's ``simulated``."""
        own = ("requests", "percentile", "ttft_s", "tpot_s", "output_tokens_per_s", "hit_rate",
               "preemptions", "peak_usage", "why_not")  # fmt: skip
        return {
            "gpu": self.outcome.sized.candidate.device.name,
            "gpus": self.outcome.gpus,
            "replicas": self.outcome.replicas,
        } | {name: getattr(self, name) for name in own}


def confirm(
    outcomes: Iterable[Outcome], goal: Goal, progress: Progress | None = None
) -> list[Simulated]:
    """Outcomes that meet the goals put to the simulator in order, the last one met or none.

    Raises:
        BadValue: the ``simulate`` extra is not installed, or a goal that no traffic stands for.
    """
    _check(goal)
    waiting = [(one.order, place, one) for place, one in enumerate(outcomes) if one.meets]
    heapq.heapify(waiting)
    found: list[Simulated] = []
    while waiting and len(found) < MOST_RUNS:
        _, place, one = heapq.heappop(waiting)
        found.append(_simulated(one, goal, progress))
        if found[-1].why_not is None:
            break
        more = outcome(one.sized, goal, one.replicas + 1)
        if more.meets and more.gpus <= goal.max_gpus:
            heapq.heappush(waiting, (more.order, place, more))
    return found


def _check(goal: Goal) -> None:
    if goal.hit_rate is not None:
        raise BadValue(
            "--simulate finds hits itself and takes no --hit-rate.",
            "Give --shared-prefix, or a --context without --prompt for conversations.",
        )
    check_installed("--simulate")


def _simulated(one: Outcome, goal: Goal, progress: Progress | None) -> Simulated:
    from kvplan.simulation.copies import copies_of
    from kvplan.simulation.planned import Rules
    from kvplan.simulation.report import figures, spread, tpot_s
    from kvplan.simulation.step_time import step_time

    plan = one.sized.plan
    assert plan is not None
    copies = copies_of(plan, Rules(), replicas=one.replicas, router="prefix-aware")
    traffic = workload(one, goal).traffic(SEED)

    def told(ended: int) -> None:
        if progress is not None:
            progress(ended, len(traffic))

    seen, _ = copies.run(traffic, step_time("estimate", plan, None), told)
    said = figures(seen, traffic)
    at = f"p{next((p for p in KNOWN if p >= goal.percentile * 100), KNOWN[-1])}"
    # A closed loop begins with all users at once, which they are never again.
    later = slice(traffic.max_in_flight or 0, None)
    waits = (seen.first_token_s - seen.arrived_s)[later]
    ttft = spread(waits[waits >= 0])[at] or said["ttft_s"][at] or 0.0
    tpot = spread(tpot_s(seen, traffic)[later])[at] or said["tpot_s"][at] or 0.0
    return Simulated(
        outcome=one,
        requests=said["requests"],
        percentile=int(at[1:]) / 100,
        ttft_s=ttft,
        tpot_s=tpot,
        output_tokens_per_s=said["output_tokens_per_s"],
        hit_rate=said["prefix"]["hit_rate"],
        preemptions=said["preemptions"],
        peak_usage=said["kv_usage"]["peak"],
        why_not=_missed(goal, ttft, tpot, said["finished"], said["requests"]),
    )


def _missed(goal: Goal, ttft: float, tpot: float, finished: int, requests: int) -> str | None:
    if finished < requests:
        return f"simulated: {requests - finished:,} of {requests:,} requests never end"
    found = [
        f"{what} {format_seconds(value)}, over {format_seconds(most)}"
        for what, value, most in (
            ("first token", ttft, goal.ttft_s),
            ("time per token", tpot, goal.tpot_s),
        )
        if most is not None and value > most
    ]
    return f"simulated: {'; '.join(found)}" if found else None


def workload(one: Outcome, goal: Goal) -> Workload:
    """The traffic that stands for a goal."""
    from kvplan.simulation.workload import Workload

    load, served = one.sized.load, one.served
    assert load is not None
    assert served is not None
    traffic = load.traffic
    users = goal.users or 1
    if goal.prompt is None:
        turn = TURN_TOKENS + round(traffic.output_tokens)
        turns = max(1, (traffic.peak_tokens - goal.shared_prefix) // turn)
        return Workload(
            requests=_bounded(users * turns),
            concurrency=None if goal.rate_per_s else users,
            rate=goal.rate_per_s,
            prompt=min(TURN_TOKENS, round(traffic.prompt_tokens)),
            output=round(traffic.output_tokens),
            shared_prefix=goal.shared_prefix,
            turns=turns,
            think=goal.think_s,
        )
    paced = goal.rate_per_s or (served.rate_per_s * one.replicas if goal.think_s else None)
    return Workload(
        requests=_bounded(10 * users if paced is None else FEWEST_REQUESTS),
        concurrency=None if paced else users,
        rate=paced,
        prompt=_drawn(goal.prompt, goal.said["prompt"]),
        output=_drawn(goal.output, goal.said["output"] or round(traffic.output_tokens)),
        shared_prefix=goal.shared_prefix,
    )


def _drawn(lengths: Distribution | None, said: Any) -> Any:
    """A trace's lengths as they are, others as they were spelled."""
    return lengths if isinstance(lengths, Empirical) else said


def _bounded(requests: int) -> int:
    return max(FEWEST_REQUESTS, min(MOST_REQUESTS, requests))
