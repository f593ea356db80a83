"""Traces of real traffic: one file a format, and the registry that tells them apart.

bytes ─► lines ─► rows ─► the format whose first row it is ─► columns ─► Traffic
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from kvplan.core.errors import BadFile, BadValue
from kvplan.simulation.lengths import parse_distribution
from kvplan.simulation.needed import check_installed
from kvplan.simulation.traces import agentic, bailian, chats, mooncake, servegen, table
from kvplan.simulation.traces.base import Format, Reading, Row, Take
from kvplan.simulation.traces.columns import BadRow, Columns
from kvplan.simulation.traces.documents import documents_of, row_of
from kvplan.simulation.traces.lines import Line, Source, lines_of, name_of
from kvplan.simulation.traffic import Traffic

__all__ = ["FORMATS", "read_lines", "read_rows", "read_traffic"]

# In the order in which they are asked: the narrower claim first.
FORMATS: tuple[Format, ...] = (bailian, mooncake, agentic, chats, table)


def read_traffic(
    source: Source | Iterable[Row],
    *,
    requests: int | None = None,
    columns: str | Mapping[str, str] | None = None,
    recorded: bool | None = None,
    tokenizer: str | None = None,
    output: str | int = 256,
    workload: str | None = None,
    scale: float = 1.0,
    seed: int = 0,
    offline: bool = False,
) -> Traffic:
    """The traffic of a trace, its format told from its beginning.

    Args:
        source: a file (gzip or not), ``-`` for standard input, bytes, or rows as dictionaries.
        requests: take the first so many.
        columns: which column is what: ``arrival=ts:ms,prompt=in,output=out``.
        recorded: True takes all arrivals as recorded; False lets a chat's turn wait for the one
            before; None as the format's reader has it (agents and chats wait).
        tokenizer: a tokenizer.json or a name of the hub, for traces of text.
        output: the length of answers that a trace of text does not have.
        workload: which one of a summary of several.
        scale: multiplies the rates of a summary.
        seed: of what is drawn from a summary.
        offline: never ask the hub for a tokenizer.

    Raises:
        BadFile: no trace, or one without a request.
        BadValue: a column that is not there.
        SourceUnreachable: it cannot be read.
    """
    check_installed("A trace", "simulate", ("numpy",))
    reading = Reading(
        requests=_positive(requests),
        names=_names(columns),
        recorded=recorded,
        tokenizer=tokenizer,
        output=parse_distribution(output, "--output"),
        workload=workload,
        scale=scale,
        seed=seed,
        offline=offline,
    )
    if not isinstance(source, str | bytes | Path):
        return read_rows(source, reading)
    return read_lines(lines_of(source), name_of(source), reading)


def read_lines(lines: Iterator[Line], source: str, reading: Reading) -> Traffic:
    """The traffic of lines; ``source`` is what messages call them.

    Raises:
        BadFile: no trace, or one without a request.
        BadValue: a column that is not there.
    """
    held = Columns(source, most=reading.requests)
    first = next(lines, None)
    if first is None:
        raise BadFile(f"{source} is empty.")
    lines = chain([first], lines)
    if first[1].lstrip()[:1] not in (b"{", b"["):
        return _table(lines, held, reading)
    return _objects(documents_of(lines, held), held, reading)


def read_rows(rows: Iterable[Row], reading: Reading) -> Traffic:
    """The traffic of rows that a program has or makes.

    Raises:
        BadFile: no requests in them.
    """
    held = Columns("the rows", most=reading.requests)
    return _objects(((n, row) for n, row in enumerate(rows, 1)), held, reading)


def _positive(requests: int | None) -> int | None:
    if requests is not None and (not isinstance(requests, int) or requests < 1):
        raise BadValue(f"--requests {requests!r} is not a whole number from 1 on.")
    return requests


def _names(columns: str | Mapping[str, str] | None) -> dict[str, str]:
    if columns is None:
        return {}
    if not isinstance(columns, str):
        return dict(columns)
    found = {}
    for pair in columns.split(","):
        what, equals, name = pair.partition("=")
        if not equals or what.strip() not in table.KNOWN:
            known = ", ".join(table.KNOWN)
            raise BadValue(f"--columns {pair[:60]!r} is not WHAT=NAME.", f"WHAT is one of {known}.")
        found[what.strip()] = name.strip()
    return found


def _table(lines: Iterator[Line], held: Columns, reading: Reading) -> Traffic:
    """Rows of fields under a header."""
    _, header = next(lines)
    try:
        take = table.table_reader(header, held, reading)
    except BadRow as why:
        raise BadFile(f"{held.source} has no header: {why}.") from None
    _take_all(lines, take, held)
    return held.finish()


def _objects(rows: Iterator[tuple[int, Any]], held: Columns, reading: Reading) -> Traffic:
    """Rows of objects, of the format that claims the first that any does."""
    for line, row in rows:
        found = row_of(row)
        if isinstance(found, str):
            held.skip(line, found)
        elif servegen.claims(found):
            servegen.draw(found, held, reading)
            return held.finish()
        else:
            fmt = next((fmt for fmt in FORMATS if fmt.claims(found)), None)
            if fmt is None:
                held.skip(line, f"no format has such a row: {', '.join(map(str, found))[:80]}")
                continue
            take = _reader(fmt, line, found, held, reading)
            if take is not None:
                _take_all(chain([(line, row)], rows), _of_objects(take), held)
                break
    return held.finish()


def _reader(fmt: Format, line: int, row: Row, held: Columns, reading: Reading) -> Take | None:
    try:
        return fmt.reader(row, held, reading)
    except BadRow as why:
        held.skip(line, str(why))
        return None


def _of_objects(take: Take) -> Any:
    def taken(line: int, row: Any) -> None:
        found = row_of(row)
        if isinstance(found, str):
            raise BadRow(found)
        take(line, found)

    return taken


def _take_all(rows: Iterator[tuple[int, Any]], take: Any, held: Columns) -> None:
    """Every row, taken or counted."""
    for line, row in rows:
        if held.full:
            return
        try:
            take(line, row)
        except BadRow as why:
            held.skip(line, str(why))
