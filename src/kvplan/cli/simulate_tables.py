"""What a person sees of a simulation: latency, throughput, what the cache did."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from kvplan.cli.table import NONE, Table
from kvplan.core.units import format_seconds
from kvplan.simulation.answers import Replays
from kvplan.simulation.find_rate import FindRateAnswer
from kvplan.simulation.simulate import SimulateAnswer
from kvplan.simulation.sweep import Point, SweepAnswer

Any_ = SimulateAnswer | Replays | SweepAnswer | FindRateAnswer

TIMES: Final = {
    "ttft_s": "first token",
    "tpot_s": "each token after",
    "e2e_s": "whole answer",
    "queue_s": "in the queue",
}
STATISTICS: Final = ("mean", "p50", "p90", "p95", "p99")


def tables(answer: Any_) -> list[Table]:
    """The tables of an answer, the most wanted first."""
    if isinstance(answer, Replays):
        return [_replays(answer)]
    if isinstance(answer, SweepAnswer):
        return [_sweep(answer)]
    if isinstance(answer, FindRateAnswer):
        return [_rates(answer)]
    found = answer.figures()
    shown = [_latency(answer, found), _cache(answer, found)]
    return shown + ([_extras(answer)] if answer.body()["extras"] else [])


def _latency(answer: SimulateAnswer, found: Mapping[str, Any]) -> Table:
    plan, node = answer.plan, answer.question.node
    cards = f"{node.gpus} × {node.device.name}" if node.gpus > 1 else node.device.name
    copies = f"{answer.copies.count} × " if answer.copies.count > 1 else ""
    title = (
        f"{plan.model.name} on {copies}{cards}, {plan.engine}: {found['finished']:,} of "
        f"{found['requests']:,} requests in {format_seconds(found['duration_s'])}"
    )
    rows = tuple(
        (name, *(_seconds(found[key][statistic]) for statistic in STATISTICS))
        for key, name in TIMES.items()
    )
    return Table(title, ("time", *STATISTICS), rows, "lrrrrr")


def _seconds(value: float | None) -> str:
    return NONE if value is None else format_seconds(value)


def _cache(answer: SimulateAnswer, found: Mapping[str, Any]) -> Table:
    usage, running, waiting = found["kv_usage"], found["running"], found["waiting"]
    error = answer.time.error
    timed = answer.time.cost.source + (f", ± {error:.0%}" if error is not None else "")
    rows = [
        ("output tokens/s", f"{found['output_tokens_per_s']:,.1f}"),
        ("requests/s", f"{found['requests_per_s']:,.2f}"),
        ("prefix hits", f"{found['prefix']['hit_rate']:.1%}"),
        ("cache in use, mean and peak", f"{usage['mean']:.1%}, {usage['peak']:.1%}"),
        ("running, mean and most", f"{running['mean']:,.1f}, {running['max']:,}"),
        ("waiting, mean and most", f"{waiting['mean']:,.1f}, {waiting['max']:,}"),
        ("preemptions", _preemptions(found)),
        *([("refused", f"{found['rejected']:,}")] if found["rejected"] else []),
        *([("gave up", f"{found['failed']:,}")] if found["failed"] else []),
        ("time of a step", timed),
    ]
    return Table("", ("figure", ""), tuple(rows), "ll")


def _preemptions(found: Mapping[str, Any]) -> str:
    if not found["preemptions"]:
        return "none"
    return (
        f"{found['preemptions']:,} of {found['preempted_requests']:,} requests "
        f"({found['preemption_rate']:.1%}); {found['recomputed_tokens']:,} tokens again"
    )


def _extras(answer: SimulateAnswer) -> Table:
    rows = tuple(
        (
            name.replace("_", " "),
            f"{value:.1%}" if name.endswith("_share") else f"{value:,.3g}",
        )
        for name, value in answer.body()["extras"].items()
    )
    return Table("", (f"of {answer.plan.engine}", ""), rows, "lr")


def _replays(answer: Replays) -> Table:
    rows = tuple(
        (
            one.name,
            f"{len(one.results):,}",
            f"{len(one.steps):,}",
            f"{sum(row['hit'] or 0 for row in one.results):,}",
            f"{sum(row['preemptions'] or 0 for row in one.results):,}",
        )
        for one in answer.scenarios
    )
    return Table("", ("scenario", "requests", "steps", "hits", "preemptions"), rows, "lrrrr")


def _sweep(answer: SweepAnswer) -> Table:
    names = [axis.name for axis in answer.axes]
    resumed = f", {answer.resumed:,} of them from before" if answer.resumed else ""
    full = answer.full_from
    said = f"; more than 1% are preempted from {_place(full)} on" if full else ""
    title = f"{len(answer.points):,} points{resumed}{said}"
    columns = (
        *names,
        "first token p95",
        "each token p95",
        "tokens/s",
        "hits",
        "preempted",
        "peak",
    )
    rows = tuple(
        (*(str(point.at[name]) for name in names), *_point(point)) for point in answer.points
    )
    return Table(title, columns, rows, "l" * len(names) + "rrrrrr")


def _place(at: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in at.items())


def _point(point: Point) -> tuple[str, ...]:
    if not point.is_answered:
        return (point.answer["error"]["message"][:200], *(NONE for _ in range(5)))
    found = point.answer
    return (
        _seconds(found["ttft_s"]["p95"]),
        _seconds(found["tpot_s"]["p95"]),
        f"{found['output_tokens_per_s']:,.0f}",
        f"{found['prefix']['hit_rate']:.1%}",
        f"{found['preemption_rate']:.1%}",
        f"{found['kv_usage']['peak']:.0%}",
    )


def _rates(answer: FindRateAnswer) -> Table:
    goal = answer.goal
    wanted = [
        f"{name} ≤ {format_seconds(most)}"
        for name, most in (("first token", goal.ttft_s), ("each token", goal.tpot_s))
        if most is not None
    ]
    said = f"{' and '.join(wanted)} at {goal.percentile}"
    found = "no rate meets" if answer.rate is None else f"{answer.rate:,.3g} requests/s meet"
    columns = (
        "requests/s",
        "first token",
        "each token",
        "tokens/s",
        "preempted",
        "misses",
    )
    rows = tuple(
        (
            f"{row['rate']:,.3g}",
            _seconds(row[f"ttft_s.{goal.percentile}"]),
            _seconds(row[f"tpot_s.{goal.percentile}"]),
            f"{row['output_tokens_per_s']:,.0f}",
            f"{row['preemption_rate']:.1%}",
            (row["missed"] or NONE).removesuffix("_s"),
        )
        for row in answer.rows()
    )
    return Table(f"{found} {said}", columns, rows, "rrrrrl")


def explanation(answer: Any_) -> list[str]:
    """Where the figures are from, a sentence a line."""
    if isinstance(answer, Replays):
        return ["Each step is the engine's; there is no clock."]
    if not isinstance(answer, SimulateAnswer):
        return ["Each point is a simulation of its own: ask it alone with --explain."]
    plan, outcome = answer.plan, answer.runs[0].outcome
    again = f"{outcome.recomputed_tokens:,} of them again"
    lines = [
        f"The pool has {outcome.num_blocks:,} blocks (kvplan fit says how).",
        f"{outcome.num_steps:,} steps; a step's time is {answer.time.cost.source}.",
        f"{outcome.computed_tokens:,} tokens of prompts were computed, {again}.",
    ]
    settings = {flag: (s.value, s.source) for flag, s in plan.launch.settings.items()}
    lines += [f"  {flag} = {value} ({origin})" for flag, (value, origin) in settings.items()]
    if len(answer.runs) > 1:
        lines.append("Between these the mean lies, at 95% (Student's t over the seeds):")
        lines += [
            f"  {path}: {low:.4g} to {high:.4g}"
            for path, (low, high) in answer.body()["confidence"]["intervals"].items()
        ]
    return lines


def _trace(answer: Any, path: Path) -> None:
    from kvplan.simulation.chrome import write_trace

    write_trace(answer, path)


def _parquet(answer: Any, path: Path) -> None:
    from kvplan.simulation.export import write_parquet

    write_parquet(answer, path)


# Endings of this verb's own files.
WRITERS: Final[dict[str, Callable[[Any, Path], None]]] = {
    ".trace.json": _trace,
    ".parquet": _parquet,
}
