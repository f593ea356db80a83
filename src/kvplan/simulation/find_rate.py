"""The largest rate that meets a goal: doubled until it is missed, then halved in between.

    meets   first token ≤ ttft and each token after ≤ tpot at a percentile, nobody refused, and as
            many answered as come

Every rate is asked with the same draws, their pauses alone scaled, so that more load is more load.
A burst that is over before its first answers says nothing of a rate: drawn traffic is drawn longer
until it lasts for twenty of its answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any, ClassVar, Final

from kvplan.core.errors import BadValue
from kvplan.core.units import format_seconds
from kvplan.planning.amounts import parse_seconds
from kvplan.planning.answer import Answer
from kvplan.simulation.report import QUANTILES
from kvplan.simulation.simulate import Progress, simulate
from kvplan.simulation.sweep import PREEMPTS
from kvplan.simulation.workload import check_read_again

CLOSE: Final = 1.02  # the rates between which the answer lies, one over the other
MOST_RUNS: Final = 40
LASTS: Final = 20  # answers, one after the other: the least that tells a rate
MOST_REQUESTS: Final = 20_000  # of a run that is drawn longer
KEEPS_UP: Final = 1.05  # the time of a run over that of its arrivals, two answers apart
LEAST_RATE: Final = 1e-4
MOST_RATE: Final = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """Seconds at a statistic; None where there is no goal."""

    ttft_s: float | None
    tpot_s: float | None
    percentile: str

    def missed(self, answer: Mapping[str, Any]) -> str | None:
        """The first thing that an answer misses; None where it meets the goal.

        ``backlog`` where requests are still being answered long after the last of them came.
        """
        if answer["rejected"]:
            return "rejected"
        if answer["failed"]:
            return "failed"
        for name, most in (("ttft_s", self.ttft_s), ("tpot_s", self.tpot_s)):
            found = answer[name][self.percentile]
            if most is not None and (found is None or found > most):
                return name
        in_time_s = KEEPS_UP * came_s(answer) + 2 * answering_s(answer)
        behind = answer["duration_s"] > in_time_s
        return "backlog" if behind else None


def came_s(answer: Mapping[str, Any]) -> float:
    """How long requests kept coming."""
    return float(answer["traffic"]["arrives_within_s"] or 0.0)


def answering_s(answer: Mapping[str, Any]) -> float:
    """What a request takes without its time in the queue, on average; 0 where none was answered."""
    whole, queue = answer["e2e_s"]["mean"], answer["queue_s"]["mean"]
    return 0.0 if whole is None else max(0.0, whole - (queue or 0.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class FindRateAnswer(Answer):
    """The largest rate that was found to meet the goal, what the next one misses, every run."""

    verb: ClassVar[str] = "simulate"

    goal: Goal
    rate: float | None
    missed: str | None
    runs: tuple[tuple[float, dict[str, Any]], ...]

    @property
    def met(self) -> bool:
        """Whether any rate meets the goal."""
        return self.rate is not None

    @property
    def warnings(self) -> tuple[str, ...]:  # type: ignore[override]
        """Those of the first run, and whether the traffic is long enough for the rate."""
        said = tuple(self.runs[0][1]["warnings"])
        if self.best is None or self.rate is None or lasts(self.best):
            return said
        within = format_seconds(came_s(self.best))
        takes = format_seconds(answering_s(self.best))
        short = (
            f"At {self.rate:,.4g} requests/s all {self.best['requests']:,} come within {within}, "
            f"an answer takes {takes}: a burst of so many meets the goal, which says little of a "
            "rate that lasts."
        )
        return (*said, short)

    @property
    def full_from(self) -> float | None:
        """The least rate that was run with a hundredth of its requests preempted."""
        return min((r for r, a in self.runs if a["preemption_rate"] > PREEMPTS), default=None)

    @property
    def best(self) -> dict[str, Any] | None:
        """The answer at the rate that was found."""
        return next((answer for rate, answer in self.runs if rate == self.rate), None)

    def rows(self) -> list[dict[str, Any]]:
        """A row a run, by rate."""
        return [
            {
                "rate": rate,
                "requests": answer["requests"],
                "missed": self.goal.missed(answer),
                **{
                    f"{name}.{self.goal.percentile}": answer[name][self.goal.percentile]
                    for name in ("ttft_s", "tpot_s")
                },
                **{name: answer[name] for name in ("preemption_rate", "output_tokens_per_s")},
            }
            for rate, answer in sorted(self.runs, key=lambda run: run[0])
        ]

    def body(self) -> dict[str, Any]:
        """The rate, the goal, and every run."""
        goal = self.goal
        return {
            "find_rate": {
                "rate": self.rate,
                "goal": {
                    "ttft_s": goal.ttft_s,
                    "tpot_s": goal.tpot_s,
                    "percentile": goal.percentile,
                },
                "limited_by": self.missed,
                "full_from": self.full_from,
                "runs": self.rows(),
                "best": self.best,
            }
        }


def find_rate(
    question: Mapping[str, Any],
    *,
    ttft: str | float | None = None,
    tpot: str | float | None = None,
    percentile: str = "p95",
    progress: Progress | None = None,
) -> FindRateAnswer:
    """The largest rate of a question that meets a goal, within 2%.

    Args:
        question: the keywords of ``simulate``; its rate is where the search begins.
        ttft: what a first token may take, as ``2s``.
        tpot: what each token after it may take, as ``50ms``.
        percentile: ``mean``, ``p50``, ``p90``, ``p95`` or ``p99`` of the requests.
        progress: called with runs that are done, and how many there may be.

    Raises:
        BadQuestion: no goal, a closed loop, or what ``simulate`` cannot answer.
    """
    goal = _goal(ttft, tpot, percentile)
    check_read_again(question.get("trace"))
    if question.get("concurrency") is not None:
        raise BadValue("A closed loop has no rate to find.", "Leave --concurrency out.")
    runs: list[tuple[float, dict[str, Any]]] = []

    def meets(rate: float) -> bool:
        """Runs a rate; the answer is kept."""
        answer = _long_enough(question, rate)
        runs.append((rate, answer))
        if progress is not None:
            progress(len(runs), MOST_RUNS)
        return goal.missed(answer) is None

    begin = question.get("rate") or 1.0
    low, high = _bracket(meets, float(begin), lambda: runs[-1][1]["running"]["max"] <= 1)
    while low is not None and high is not None and high > low * CLOSE and len(runs) < MOST_RUNS:
        middle = (low * high) ** 0.5
        low, high = (middle, high) if meets(middle) else (low, middle)
    beyond = next((answer for rate, answer in runs if rate == high), None)
    missed = None if beyond is None else goal.missed(beyond)
    return FindRateAnswer(goal=goal, rate=low, missed=missed, runs=tuple(runs))


def lasts(answer: Mapping[str, Any]) -> bool:
    """Whether the traffic goes on for many times what an answer takes."""
    return came_s(answer) >= LASTS * answering_s(answer)


def _long_enough(question: Mapping[str, Any], rate: float) -> dict[str, Any]:
    """The answer at a rate, of traffic that is drawn longer where it is over too soon."""
    answer = simulate(**{**question, "rate": rate}).to_dict()
    while question.get("trace") is None and not lasts(answer):
        wanted = ceil(1.2 * LASTS * rate * answering_s(answer))
        requests = min(wanted, MOST_REQUESTS)
        if requests <= answer["requests"]:
            break
        answer = simulate(**{**question, "rate": rate, "requests": requests}).to_dict()
    return answer


def _goal(ttft: str | float | None, tpot: str | float | None, percentile: str) -> Goal:
    if ttft is None and tpot is None:
        raise BadValue("--find-rate needs a goal.", "Give --ttft 2s, --tpot 50ms, or both.")
    known = ("mean", *QUANTILES)
    if percentile not in known:
        raise BadValue(f"--percentile {percentile[:20]!r} is none.", f"One of {', '.join(known)}.")
    return Goal(
        ttft_s=None if ttft is None else parse_seconds(ttft, "--ttft"),
        tpot_s=None if tpot is None else parse_seconds(tpot, "--tpot"),
        percentile=percentile,
    )


def _bracket(
    meets: Callable[[float], bool], rate: float, is_idle: Callable[[], bool]
) -> tuple[float | None, float | None]:
    """A rate that meets the goal and one twice as high that does not; None where there is none.

    Where the requests of the last run never met each other no lower rate helps.
    """
    if meets(rate):
        while rate * 2 <= MOST_RATE:
            if not meets(rate * 2):
                return rate, rate * 2
            rate *= 2
        return rate, None
    while rate / 2 >= LEAST_RATE and not is_idle():
        if meets(rate / 2):
            return rate / 2, rate
        rate /= 2
    return None, rate
