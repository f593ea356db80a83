"""What a person sees of a log: what went wrong, where the memory went, what to change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kvplan.cli.table import NONE, Table
from kvplan.core.units import format_bytes, format_gib
from kvplan.logs.compare import Comparison, Difference
from kvplan.logs.pool import pool_of
from kvplan.planning.explain import ExplainAnswer

MOST_FACTS = 40  # of the table; JSON has all
FIGURES = ("kv_tokens", "num_gpu_blocks", "max_concurrency")


def tables(answer: ExplainAnswer) -> list[Table]:
    """The tables of an answer, the most wanted first."""
    found = [_findings(answer), _ledger(answer), _figures(answer), _suggestions(answer)]
    found = [table for table in found if table.rows] or [_facts(answer)]
    found[0] = replace(found[0], title=_title(answer))
    if answer.compared is not None:
        found.insert(0, _compared(answer.compared))
    return found


def _title(answer: ExplainAnswer) -> str:
    start = answer.start
    model, gpu = start.last("model"), start.last("gpu")
    of = f" with {model.value}" if model is not None else ""
    on = f" on {gpu.value}" if gpu is not None else ""
    named = " ".join(filter(None, (start.engine, start.version, answer.ended)))
    return f"{named}{of}{on}"


def _findings(answer: ExplainAnswer) -> Table:
    rows = tuple((finding.severity, finding.message) for finding in answer.findings)
    return Table("", ("", "what the log says"), rows, "ll")


def _facts(answer: ExplainAnswer) -> Table:
    """What is said, where nothing follows of it."""
    last = {fact.name: fact for fact in answer.start.facts}
    rows = tuple(
        (fact.name.replace("_", " "), _figure(fact.value, fact.unit), f"line {fact.line}")
        for fact in [*last.values()][:MOST_FACTS]
    )
    return Table("", ("what the log says", "", "from"), rows, "lll")


def _ledger(answer: ExplainAnswer) -> Table:
    apart = {row.name: row for row in answer.differences}
    rows = tuple(
        (
            term.name.replace("_", " "),
            format_gib(term.num_bytes),
            _predicted(apart.get(term.name)),
            term.source,
            apart[term.name].why if term.name in apart else "",
        )
        for term in answer.ledger
    )
    return Table("", ("one card", "logged", "predicted", "from", ""), rows, "lrrll")


def _predicted(row: Difference | None) -> str:
    if row is None or row.predicted is None:
        return NONE
    return format_gib(int(row.predicted))


def _figures(answer: ExplainAnswer) -> Table:
    apart = [
        (row.name.replace("_", " "), _number(row.logged), _number(row.predicted), row.why)
        for row in answer.differences
        if row.name in FIGURES
    ]
    apart += _not_apart(answer, {row.name for row in answer.differences})
    inferred = [
        (row.name.replace("_", " "), _figure(row.value, row.unit), NONE, row.how)
        for row in answer.inferred
    ]
    return Table("", ("figure", "log", "predicted", "how"), (*apart, *inferred), "lrrl")


def _not_apart(answer: ExplainAnswer, known: set[str]) -> Iterator[tuple[str, str, str, str]]:
    """What the pool holds as the log says it, where nothing is predicted of it."""
    pool = pool_of(answer.start)
    length = f"requests of {pool.length:,} tokens" if pool.length else ""
    if pool.tokens and "kv_tokens" not in known and answer.start.last("kv_tokens"):
        yield "kv tokens", _number(pool.tokens), NONE, ""
    if pool.concurrency and "max_concurrency" not in known:
        yield "max concurrency", _number(pool.concurrency), NONE, length


def _number(value: int | float | None) -> str:
    return NONE if value is None else f"{value:,.2f}".removesuffix(".00")


def _figure(value: int | float | str, unit: str) -> str:
    if isinstance(value, str | bool):
        return str(value)
    if unit == "bytes":
        return format_bytes(round(value))
    return f"{_number(value)} {unit}".strip()


def _suggestions(answer: ExplainAnswer) -> Table:
    rows = tuple((f"{row.flag} {row.value}".strip(), row.effect) for row in answer.suggestions)
    return Table("", ("what fits", ""), rows, "ll")


def _compared(compared: Comparison) -> Table:
    """Settings and terms of two starts side by side, under the sentence of why."""
    settings = [(name, str(a), str(b), "") for name, a, b in compared.settings]
    return Table(
        compared.message,
        ("", "first", "second", ""),
        (*settings, *_moves(compared), *_held(compared)),
        "lrrr",
    )


def _moves(compared: Comparison) -> Iterator[tuple[str, str, str, str]]:
    for name, first, second in compared.terms:
        moved = NONE if first is None or second is None else format_gib(second - first)
        yield (
            name.replace("_", " "),
            NONE if first is None else format_gib(first),
            NONE if second is None else format_gib(second),
            moved,
        )


def _held(compared: Comparison) -> Iterator[tuple[str, str, str, str]]:
    for name, first, second in compared.figures:
        yield name.replace("_", " "), _number(first), _number(second), f"× {second / first:.3g}"


def explanation(answer: ExplainAnswer) -> list[str]:
    """The facts with their lines, and how each figure follows."""
    lines = [
        f"line {fact.line}{f' ({fact.rank})' if fact.rank else ''}: {fact.name} = "
        f"{_figure(fact.value, fact.unit)}"
        for fact in answer.start.facts[:MOST_FACTS]
    ]
    more = len(answer.start.facts) - MOST_FACTS
    if more > 0:
        lines.append(f"… and {more} more facts, in --json.")
    lines += [f"{row.name} = {_figure(row.value, row.unit)}: {row.how}" for row in answer.inferred]
    return lines
