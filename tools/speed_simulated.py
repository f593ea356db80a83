"""A published closed loop, simulated: as many clients, ten prompts each, lengths as drawn.

The formula of a first token in a loop (planning/speed/loop.py) knows neither the first wave nor who
meets whom; the simulator does. A fit that asks the formula thousands of times is told by how much
the simulator's answer differs from it.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Final

from kvplan.core.errors import KvplanError
from kvplan.core.step import Way
from kvplan.planning.speed import calibration, estimate
from kvplan.simulation.copies import copies_of
from kvplan.simulation.outcome import Outcome
from kvplan.simulation.planned import Rules
from kvplan.simulation.report import figures
from kvplan.simulation.step_time import StepTime
from kvplan.simulation.synthetic import synthetic
from kvplan.simulation.traffic import Traffic
from tools.speed_cases import Case
from tools.speed_rows import NOMINAL, Row, is_validation

PROMPTS_A_CLIENT: Final = 10
SEED: Final = 7
PROCESSES: Final = 2


def simulated_s(case: Case) -> dict[str, float] | None:
    """Means of one rank; None where its speed is not known."""
    found = estimate(case.plan)
    if found is None:
        return None
    clients = max(1, round(case.row.concurrency / found.ranks))
    traffic = loop_of(case.row, clients)
    timed = StepTime(cost=found.cost, error=found.error, way=way_of(case.row, found.batching.way))
    outcome = run(case, traffic, timed)
    said = figures(outcome, traffic)
    return {name: said[name]["mean"] or float("nan") for name in ("ttft_s", "tpot_s")}


def way_of(row: Row, own: Way) -> Way:
    """A request's way: through the engine's own server, or Dynamo's before it."""
    factors = calibration.table()["factors"].get("front dynamo", {}) if is_validation(row) else {}
    return Way(
        own.fixed_s * factors.get("request_s", 1.0), own.token_s * factors.get("prompt_s", 1.0)
    )


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


def first_tokens(cases: Sequence[Case]) -> list[float | None]:
    """Seconds to the first token of each loop, at the rates that the data file has now."""
    # Forked anew each time, so that nobody remembers the rates of an earlier file.
    _forked[:] = cases
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(PROCESSES, mp_context=context) as pool:
        return list(pool.map(_first_token, range(len(cases)), chunksize=8))


_forked: list[Case] = []  # a case is too rich to be sent: a forked process has it already


def _first_token(at: int) -> float | None:
    try:
        found = simulated_s(_forked[at])
    except KvplanError:
        return None
    return found["ttft_s"] if found else None
