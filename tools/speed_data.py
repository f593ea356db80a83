"""The published rows, cleaned and split: which can be asked, which are fitted, which kept aside."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from dataclasses import replace
from functools import cache
from typing import Any, Final, NamedTuple

from kvplan.planning.speed.batching import batching_of
from kvplan.planning.speed.estimate import Estimate
from kvplan.planning.speed.rates import IDEAL
from kvplan.planning.speed.steps import step_cost
from tools.speed_cases import Case, answer_by, cases
from tools.speed_names import MIXTURES
from tools.speed_rows import REFERENCE, Row, is_first_in_loop, question_of, rows, run_of, series

WITHOUT: Final = REFERENCE / "without.json"  # what tools.calibrate_speed --without was off by

# The bound that a row may not beat: every rate ideal, and the tokens of a batch alike in half of
# the experts that they draw, as an uneven router makes them.
LEAST: Final = replace(IDEAL, spread=0.5)
ROUNDING: Final = 1.02
SUSPECT: Final = 0.25  # of a series' rows beyond the bound
SEED: Final = 20260829  # the day after the newest row was published
STALLED: Final = 3.0  # times the first token of a server that is the same but for its experts' cut


class Data(NamedTuple):
    """All cases, the models kept aside, and what was left out."""

    cases: list[Case]
    aside: frozenset[str]
    left: Counter[str]


@cache
def data() -> Data:
    """The rows of the published file, cleaned and split."""
    kept, left = rows()
    planned, unplanned = cases(kept)
    good, bad = usable(planned)
    return Data(good, split([case.row for case in good]), left + unplanned + bad)


def usable(found: list[Case]) -> tuple[list[Case], Counter[str]]:
    """Cases without those that cannot be what they say, and why the others are left out.

    A series (one file of one source) of which a quarter beats the card's own bound is not what it
    says: prompts that were cached, fewer clients than stated, drafts.
    """
    left: Counter[str] = Counter()
    kept = []
    for case in found:
        weights = next((t.num_bytes for t in case.plan.ledger if t.name == "weights"), 0)
        if case.row.kind != "static" and weights > case.plan.node.memory_bytes:
            left["weights that do not fit the cards: the layout is not what it says"] += 1
        else:
            kept.append(case)
    counted, beating = Counter[str](), Counter[str]()
    for case in kept:
        if case.row.metric != "ttft_s":
            counted[series(case.row)] += 1
            beating[series(case.row)] += beats_bound(case)
    good, waiting = [], stalled(kept)
    for case in kept:
        name = series(case.row)
        if is_first_in_loop(case.row) and run_of(case.row) in waiting:
            left["first tokens of a run that stalls: three times those of its like"] += 1
        elif beating[name] and beating[name] >= SUSPECT * counted[name]:
            left["a series that beats the card's own bound"] += 1
        else:
            good.append(case)
    return good, left


def stalled(found: list[Case]) -> set[tuple[Any, ...]]:
    """Runs of whose first tokens most take three times those of a run that differs in its release
    and in how its experts are cut alone.

    Neither explains that; kernels that are compiled under load do, which keep the first clients
    waiting for the same seconds however many they are.
    """
    alike: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in (case.row for case in found):
        if is_first_in_loop(row):
            alike[question_of(row._replace(experts_dealt=False, version=None))].append(row)
    compared, longer = Counter[tuple[Any, ...]](), Counter[tuple[Any, ...]]()
    for same in alike.values():
        least = min(row.value for row in same)
        for row in same if len(same) > 1 else ():
            compared[run_of(row)] += 1
            longer[run_of(row)] += row.value > STALLED * least
    return {run for run, many in compared.items() if longer[run] > many / 2}


def beats_bound(case: Case) -> bool:
    """Whether a row is faster than its card can be."""
    cost = step_cost(case.ideal, LEAST, "bound")
    ideal = Estimate(
        cost=cost,
        in_process=cost,
        batching=batching_of(case.plan, LEAST, int(case.ideal.group)),
        error=0.0,
        source="bound",
        calibrated=False,
        replicas=case.replicas,
    )
    least = answer_by(ideal, case)
    if case.row.metric == "tokens_per_s":
        return case.row.value > least * ROUNDING
    return case.row.value < least / ROUNDING


def split(found: list[Row], seed: int = SEED) -> frozenset[str]:
    """The models kept aside: one of every three, drawn among those with as many rows.

    Dense models and mixtures apart, each sorted by rows: a draw over all would as likely as not
    put the few models with most of the rows on one side.
    """
    drawn = random.Random(seed)
    count = Counter(row.group for row in found)
    aside: set[str] = set()
    for mixed in (False, True):
        names = [name for name in count if (name in MIXTURES) == mixed]
        names.sort(key=lambda name: (-count[name], name))
        for start in range(0, len(names), 3):
            aside.add(drawn.choice(names[start : start + 3]))
    return frozenset(aside)
