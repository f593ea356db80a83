"""What a person sees of two measurements side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kvplan.cli.table import NONE, Table
from kvplan.core.units import format_bytes, format_seconds
from kvplan.measuring.compare import CompareAnswer, Compared


def tables(answer: CompareAnswer) -> list[Table]:
    """Runs first, then what else differs."""
    rows = tuple(
        (
            row.title,
            row.figure,
            _value(row, row.first),
            _value(row, row.second),
            NONE if row.ratio is None else f"× {row.ratio:.2f}",
            row.verdict,
        )
        for row in answer.rows
    )
    columns = ("run", "figure", *answer.folders, "", "")
    settings = tuple((name, str(one), str(other)) for name, one, other in answer.settings)
    found = [Table(" and ".join(answer.folders), columns, rows, "llrrrl")]
    if settings:
        found.append(Table("", ("differs", *answer.folders), settings, "lll"))
    return found


def records(answer: CompareAnswer) -> tuple[Sequence[str], Iterator[Sequence[object]]]:
    """The rows as values, for CSV."""
    columns = ("run", "figure", "first", "second", "ratio", "verdict")
    rows = ((r.title, r.name, r.first, r.second, r.ratio, r.verdict) for r in answer.rows)
    return columns, rows


def explanation(answer: CompareAnswer) -> list[str]:
    """How the verdicts are made."""
    return ["Same: within 5 %, which is what a repeated run differs by."]


def _value(row: Compared, value: float) -> str:
    if row.name.endswith("_per_s"):
        return f"{value:,.1f}"
    if row.name.endswith("_s"):
        return format_seconds(value)
    return format_bytes(round(value)) if row.name.endswith("_bytes") else f"{value:,.0f}"
