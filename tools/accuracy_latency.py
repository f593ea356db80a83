"""Simulated latency beside published closed loops of models that no rate was fitted to.

    python -m tools.accuracy_latency [SAMPLE]

Each question is run as its source ran it: ten prompts a client, lengths drawn from 0.8 to 1 of the
nominal ones where the source draws them, one rank with its share of the clients. Rows, their split
and their plans are those of ``tools.speed_rows`` and ``tools.speed_cases``.
"""

from __future__ import annotations

import random
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import mean, median
from typing import Any, Final, NamedTuple

from kvplan.core.errors import KvplanError
from kvplan.planning.speed import estimate
from kvplan.simulation.copies import copies_of
from kvplan.simulation.outcome import Outcome
from kvplan.simulation.planned import Rules
from kvplan.simulation.report import figures
from kvplan.simulation.step_time import StepTime
from kvplan.simulation.synthetic import synthetic
from kvplan.simulation.traffic import Traffic
from tools.speed_cases import Case, case_of
from tools.speed_recipes import planned_as_run
from tools.speed_rows import MIXTURES, Row, rows, split

PROMPTS_A_CLIENT: Final = 10
NOMINAL: Final = 0.9  # of the nominal length is the mean of those drawn from 0.8 to 1
SAMPLE: Final = 400
SEED: Final = 7
SOURCE: Final = "aic-silicon"


class Compared(NamedTuple):
    """A question, and seconds measured and simulated by metric."""

    row: Row
    measured: dict[str, float]
    simulated: dict[str, float]

    def error(self, metric: str) -> float | None:
        """Of the simulated over the measured; None where it was not measured."""
        if metric not in self.measured:
            return None
        return self.simulated[metric] / self.measured[metric] - 1


def questions(sample: int = SAMPLE) -> list[tuple[Row, dict[str, float]]]:
    """The loops of models kept aside, TPOT and TTFT of one run together; a draw of them."""
    found, _ = rows()
    aside = split(found)
    answers: dict[tuple[Any, ...], dict[str, float]] = defaultdict(dict)
    first: dict[tuple[Any, ...], Row] = {}
    for row in found:
        if row.source != SOURCE or row.group not in aside or row.kind not in ("loop", "single"):
            continue
        key = tuple(row._replace(place=0, metric="", value=0.0))
        answers[key][row.metric] = row.value
        first.setdefault(key, row)
    both = [(first[key], answers[key]) for key in first]
    if len(both) <= sample:
        return both
    return random.Random(SEED).sample(both, sample)


def compared(asked: Sequence[tuple[Row, dict[str, float]]]) -> Iterator[Compared]:
    """Every question that can be planned and whose clients fit, simulated."""
    for row, measured in asked:
        case = case_of(row)
        if isinstance(case, str):
            continue
        try:
            simulated = simulated_s(case._replace(plan=planned_as_run(row, case.plan)))
        except KvplanError:
            continue
        if simulated is not None:
            yield Compared(row, measured, simulated)


def simulated_s(case: Case) -> dict[str, float] | None:
    """Means of one rank; None where its speed is not known."""
    found = estimate(case.plan)
    if found is None:
        return None
    clients = max(1, round(case.row.concurrency / found.ranks))
    traffic = loop_of(case.row, clients)
    timed = StepTime(cost=found.cost, error=found.error, request_s=found.batching.request_s)
    outcome = run(case, traffic, timed)
    said = figures(outcome, traffic)
    return {name: said[name]["mean"] or float("nan") for name in ("ttft_s", "tpot_s")}


def loop_of(row: Row, clients: int) -> Traffic:
    """Ten prompts a client, drawn as the source draws them."""
    prompt, output = lengths(row.prompt, row.drawn), lengths(row.output, row.drawn)
    return synthetic(
        requests=PROMPTS_A_CLIENT * clients,
        prompt=prompt,
        output=output,
        concurrency=clients,
        seed=SEED,
    )


def lengths(average: float, drawn: bool) -> str:
    """As ``--prompt`` writes them."""
    if not drawn:
        return str(round(average))
    nominal = average / NOMINAL
    return f"uniform:{round(0.8 * nominal)}-{round(nominal)}"


def run(case: Case, traffic: Traffic, timed: StepTime) -> Outcome:
    """One rank alone."""
    copies = copies_of(case.plan, Rules(), replicas=1, router="round-robin")
    return copies.alone().run(traffic, timed, lambda _: None)[0]


def table(found: Sequence[Compared], metric: str) -> Iterator[str]:
    """A line a kind: count, median and mean of the error's size, median of the error."""
    kinds = {
        "dense": lambda row: row.group not in MIXTURES,
        "mixtures": lambda row: row.group in MIXTURES,
        **{name: (lambda row, name=name: row.engine == name)  # type: ignore[misc]
           for name in ("vllm", "sglang", "tensorrt-llm")},
        "drawn": lambda row: row.drawn,
        "equal": lambda row: not row.drawn,
    }  # fmt: skip
    for name, belongs in kinds.items():
        errors = [e for one in found if belongs(one.row) if (e := one.error(metric)) is not None]
        if errors:
            sizes = [abs(error) for error in errors]
            yield (
                f"{metric:7} {name:13} {len(errors):4}  median |error| {median(sizes):6.1%}  "
                f"mean {mean(sizes):6.1%}  median error {median(errors):+7.1%}"
            )


def main() -> int:
    """Prints both metrics."""
    sample = int(sys.argv[1]) if len(sys.argv) > 1 else SAMPLE
    asked = questions(sample)
    found = list(compared(asked))
    print(f"{len(found)} of {len(asked)} questions of models kept aside")
    for metric in ("tpot_s", "ttft_s"):
        print("\n".join(table(found, metric)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
