"""What a person sees of a measurement: a row a run, then predictions beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kvplan.cli.table import NONE, Table
from kvplan.core.units import format_bytes, format_seconds
from kvplan.measuring.answer import MeasureAnswer
from kvplan.measuring.differences import Difference
from kvplan.measuring.predicted import BOUND
from kvplan.measuring.summary import Run


def tables(answer: MeasureAnswer) -> list[Table]:
    """The tables of an answer, the most wanted first."""
    found = [_speeds(answer), _reuse(answer)]
    if answer.differences:
        found.append(_differences(answer))
    return found


def name_of(run: Run) -> str:
    """A run in few words."""
    pace = f"{run.concurrency:,} at once" if run.rate is None else f"{run.rate:g} a second"
    marks = ("" if run.reuse else ", reuse off") + (", under pressure" if run.pressure else "")
    length = "" if run.prompt is None else f"{run.prompt:,} tokens, "
    return f"{run.prefix}, {length}{pace}{marks}"


def _speeds(answer: MeasureAnswer) -> Table:
    columns = (
        "run", "requests", "failed", "TTFT p50", "p99", "between tokens p50", "p99", "tokens/s",
        "memory",
    )  # fmt: skip
    rows = tuple(
        (
            name_of(run),
            f"{run.requests:,}",
            _failed(run),
            _time(run.ttft_s["p50"]),
            _time(run.ttft_s["p99"]),
            _time(run.itl_s["p50"]),
            _time(run.itl_s["p99"]),
            f"{run.output_tokens_per_s:,.1f}",
            format_bytes(run.peak_memory_bytes) if run.peak_memory_bytes else NONE,
        )
        for run in answer.runs
    )
    return Table(answer.experiment.server.title, columns, rows, "lrlrrrrrr")


def _reuse(answer: MeasureAnswer) -> Table:
    columns = (
        "run", "prompt tokens", "sent before", "reused", "server's count", "lost", "preemptions",
        "evicted", "cache peak",
    )  # fmt: skip
    rows = tuple(
        (
            name_of(run),
            f"{run.prompt_tokens:,}",
            f"{run.known_tokens:,}",
            _count(run.cached_tokens),
            _count(run.server_cached_tokens),
            _count(run.lost_tokens),
            _count(run.preemptions),
            _count(run.evictions),
            NONE if run.kv_usage_peak is None else f"{run.kv_usage_peak:.0%}",
        )
        for run in answer.runs
    )
    return Table("", columns, rows, "lrrrrrrrr")


def _is_shown(answer: MeasureAnswer, one: Difference) -> bool:
    """A bound is shown where nothing else is measured: once a length and a concurrency."""
    if one.kind != BOUND or one.run is None:
        return True
    plain = [run.prefix for run in answer.runs if run.reuse and not run.pressure]
    run = answer.runs[one.run]
    return run.reuse and not run.pressure and run.prefix == plain[0]


def _differences(answer: MeasureAnswer) -> Table:
    rows = tuple(
        (
            one.name.replace("_", " ").removesuffix(" s").removesuffix(" bytes"),
            name_of(answer.runs[one.run]) if one.run is not None else "server",
            _value(one, one.measured),
            f"{_value(one, one.predicted)} ({one.kind})",
            NONE if one.ratio is None else f"× {one.ratio:.2f}",
            one.why,
        )
        for one in answer.differences
        if _is_shown(answer, one)
    )
    columns = ("predicted", "run", "measured", "predicted", "", "why")
    return Table("", columns, rows, "llrrrl")


def _value(one: Difference, value: float) -> str:
    if one.name.endswith("_s"):
        return format_seconds(value)
    return format_bytes(round(value)) if one.name.endswith("_bytes") else f"{value:,.0f}"


def _failed(run: Run) -> str:
    if not run.failed:
        return "0"
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(run.failures.items()))
    return f"{run.failed:,} ({kinds})"


def _time(value: float | None) -> str:
    return NONE if value is None else format_seconds(value)


def _count(value: int | None) -> str:
    return NONE if value is None else f"{value:,}"


def records(answer: MeasureAnswer) -> tuple[Sequence[str], Iterator[Sequence[object]]]:
    """The runs as rows of values, for CSV."""
    columns = list(answer.runs[0].to_dict()) if answer.runs else []
    return columns, (list(run.to_dict().values()) for run in answer.runs)


def explanation(answer: MeasureAnswer) -> list[str]:
    """How the figures were taken, a sentence a line."""
    experiment = answer.experiment
    seen = experiment.memory.source or "nothing that could be seen from here"
    return [
        "TTFT: from the last byte of the request to the first chunk with text in it.",
        "Between tokens: gaps of later chunks, each over the tokens that it bundles.",
        f"The server adds {experiment.overhead_tokens:,} tokens to a prompt.",
        "Reused: usage.prompt_tokens_details of each reply; the server's count: its counters.",
        f"Memory: {seen}.",
    ]
