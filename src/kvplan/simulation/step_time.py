"""What a step takes, by who says so: the speed model, a constant, or a table that was measured.

    estimate          planning/speed at the rates that engines reach, with its error
    bound             the same at the card's own limits: nothing is faster
    constant:10ms     every step the same
    FILE.csv          rows of tokens,contexts,seconds of steps that were measured

A table's rows are steps: new tokens, the sum of the contexts that its decoding sequences see, and
seconds. The rows with the least contexts at each number of tokens are the curve over tokens; what
the others take beyond it, over their contexts, is the time of one token of context.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kvplan.core.errors import BadFile, BadValue
from kvplan.core.step import AT_ONCE, AttentionCost, Knot, StepCost, Way
from kvplan.core.units import format_seconds
from kvplan.engines.base import EnginePlan
from kvplan.planning.amounts import parse_seconds
from kvplan.planning.speed import bound, estimate
from kvplan.readers import reach

COLUMNS: Final = ("tokens", "contexts", "seconds")
MOST_ROWS: Final = 100_000
MOST_BYTES: Final = 16 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTime:
    """The cost of a step, whose it is, and the relative half width of its error where one is known.

    ``cost.source`` says it to people. ``way`` is what a request needs through the server before its
    scheduler sees it; ``group`` the ranks of a copy that each have their own sequences.
    """

    cost: StepCost
    error: float | None = None
    way: Way = AT_ONCE
    group: int = 1


def step_time(said: str, plan: EnginePlan, bandwidth: int | None) -> StepTime:
    """The time of a plan's steps as ``--time`` says.

    Raises:
        BadValue: no such time, or the speed model lacks what it needs of the card or the model.
        BadFile: a table that is none.
    """
    if said.startswith("constant:"):
        return StepTime(cost=constant(parse_seconds(said.removeprefix("constant:"), "--time")))
    if said in ("estimate", "bound"):
        return _modelled(said, plan, bandwidth)
    if not reach.is_open():
        raise BadValue(f"--time {said[:60]} is none.", "Write estimate, bound or constant:10ms.")
    return StepTime(cost=read_table(Path(said)))


def constant(seconds: float) -> StepCost:
    """Every step the same.

    Raises:
        BadValue: not above 0, or more than an hour.
    """
    if not 0 < seconds <= 3600:
        raise BadValue(f"A step of {seconds:g} s is none.", "As in --time constant:10ms.")
    said = f"constant: {format_seconds(seconds)} a step (--time)"
    return StepCost(fixed_s=seconds, sequence_s=0.0, linear=(), attention=(), source=said)


def _modelled(said: str, plan: EnginePlan, bandwidth: int | None) -> StepTime:
    if said == "bound":
        cost = bound(plan, bandwidth)
        if cost is not None:
            return StepTime(cost=cost)
    else:
        found = estimate(plan, bandwidth)
        if found is not None:
            if not found.computes:
                raise BadValue(
                    f"What {plan.node.device.title} computes a second is in no source, so that "
                    "prompts cannot be timed.",
                    "Name it as a card of your own with its tflops (docs/settings.md), or pass "
                    "--time bound, --time constant:10ms or a table that was measured.",
                )
            return StepTime(
                cost=found.cost,
                error=found.error,
                way=found.batching.way,
                group=found.batching.group,
            )
    raise BadValue(
        f"How fast {plan.node.device.title} is, or what {plan.model.name} weighs, is not known.",
        "Pass --bandwidth and --weights-bytes, or --time constant:10ms.",
    )


def read_table(path: Path) -> StepCost:
    """The cost of a table of measured steps.

    Raises:
        BadFile: not readable, no such columns, or no curve.
    """
    try:
        if path.stat().st_size > MOST_BYTES:
            raise BadFile(f"{path} is too long for a table of steps.")
        rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
    except (OSError, UnicodeDecodeError):
        raise BadFile(
            f"--time {path} is no file that can be read.",
            "Write estimate, bound, constant:10ms, or a CSV file of tokens,contexts,seconds.",
        ) from None
    return table_cost([_row(n, row, path) for n, row in enumerate(rows[:MOST_ROWS], 2)], str(path))


def _row(line: int, row: dict[str, str], path: Path) -> tuple[int, int, float]:
    try:
        tokens, contexts, seconds = (float(row[name]) for name in COLUMNS)
        if tokens < 1 or contexts < 0 or not 0 < seconds < 3600:
            raise ValueError
    except (KeyError, TypeError, ValueError):
        raise BadFile(
            f"Line {line:,} of {path} is no measured step.",
            f"Columns: {', '.join(COLUMNS)}.",
        ) from None
    return int(tokens), int(contexts), seconds


def table_cost(rows: Iterable[tuple[int, int, float]], source: str) -> StepCost:
    """A curve over new tokens and a slope over contexts, from measured steps.

    Raises:
        BadFile: no rows.
    """
    measured = sorted(rows)
    if not measured:
        raise BadFile(f"{source} has no measured steps.", f"Columns: {', '.join(COLUMNS)}.")
    least: dict[int, tuple[int, int, float]] = {}
    for row in measured:
        least.setdefault(row[0], row)
    slope = _slope([(c - least[t][1], s - least[t][2]) for t, c, s in measured])
    knots, before = [], 0.0
    for tokens, contexts, seconds in least.values():
        before = max(before, seconds - slope * contexts)
        knots.append(Knot(tokens, before))
    attention = (AttentionCost(window=None, read_s=slope, pair_s=0.0),)
    said = f"measured: {len(measured):,} steps of {source}"
    return StepCost(
        fixed_s=0.0,
        sequence_s=0.0,
        linear=tuple(knots),
        attention=attention,
        source=said,
    )


def _slope(points: list[tuple[int, float]]) -> float:
    """Least squares through the origin, not below 0."""
    square = sum(x * x for x, _ in points)
    return max(0.0, sum(x * y for x, y in points) / square) if square else 0.0
