"""Named columns: CSV files with a header, and JSONL of flat objects.

Azure's and BurstGPT's traces are such tables; their headers are among the known names. A name may
carry its unit: ``arrival=ts:ms``.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from kvplan.core.errors import BadFile, BadValue
from kvplan.simulation.traces.base import Reading, Row, Take
from kvplan.simulation.traces.columns import BadRow, Columns

NAME = "table"

# What a column is, and the names that it is known by, folded to letters. Azure 2023 and 2024:
# TIMESTAMP, ContextTokens, GeneratedTokens; BurstGPT: Timestamp, Session ID, Elapsed time, Model,
# Request tokens, Response tokens, Total tokens, Log Type.
KNOWN = {
    "arrival": ("timestamp", "arrival", "arrivals", "arrivaltime", "arrivaltimestamp", "arrivedat",
                "time", "ts", "starttime", "requesttime", "sendtime"),
    "prompt": ("contexttokens", "requesttokens", "prompttokens", "prompt", "promptlen", "isl",
               "promptlength", "inputtokens", "inputlength", "inputlen", "input",
               "numprefilltokens"),
    "output": ("generatedtokens", "responsetokens", "outputtokens", "output", "outputlen",
               "outputlength", "completiontokens", "numdecodetokens", "osl"),
    "priority": ("priority",),
    "think": ("think", "thinktime", "thinks"),
}  # fmt: skip
SCALES = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
UNITS = {f"{name}{ending}": unit for ending, unit in (("ms", "ms"), ("us", "us"), ("ns", "ns"),
         ("s", "s"), ("sec", "s"), ("seconds", "s")) for name in KNOWN["arrival"]}  # fmt: skip


def claims(row: Row) -> bool:
    """By the name of a prompt's length."""
    return _found("prompt", list(row)) is not None


def is_header(line: bytes) -> bool:
    """Whether a line names the columns of a trace: a prompt's and an answer's length."""
    names = line.decode("utf-8", "replace").replace('"', "")
    split = [name.strip() for name in names.split(max(",;\t|", key=names.count))]
    return all(_found(what, split) is not None for what in ("prompt", "output"))


def reader(row: Row, columns: Columns, reading: Reading) -> Take:
    """Flat objects by their keys."""
    fields = fields_of(list(row), reading, columns)

    def take(_: int, row: Row) -> None:
        add(columns, {what: convert(row.get(name)) for what, (name, convert) in fields.items()})

    return take


def table_reader(header: bytes, columns: Columns, reading: Reading) -> Callable[[int, bytes], None]:
    """What takes the lines below a header.

    Raises:
        BadFile: no column of lengths in the header.
        BadValue: a column that was named and is not there.
    """
    text = header.decode("utf-8", "replace")
    delimiter = max(",;\t|", key=text.count)
    names = [name.strip() for name in cells(header, delimiter)]
    fields = fields_of(names, reading, columns)
    places = [(what, names.index(name), convert) for what, (name, convert) in fields.items()]
    last = max(place for _, place, _ in places)

    def take(_: int, line: bytes) -> None:
        row = cells(line, delimiter)
        if len(row) <= last:
            raise BadRow(f"{len(row)} fields where the header has {len(names)}")
        add(columns, {what: convert(row[place]) for what, place, convert in places})

    return take


def add(columns: Columns, values: Mapping[str, Any]) -> None:
    """A request by the names of ``KNOWN``."""
    if values["output"] == 0:
        raise BadRow("answered nothing")
    columns.add(
        arrival_s=values.get("arrival", 0.0),
        prompt_tokens=values["prompt"],
        output_tokens=values["output"],
        priority=values.get("priority", 0),
    )


def cells(line: bytes, delimiter: str) -> list[str]:
    """The fields of one line.

    Raises:
        BadRow: not UTF-8, or a quote without its end.
    """
    try:
        text = line.decode("utf-8")
        if '"' not in text:
            return text.split(delimiter)
        return next(csv.reader([text], delimiter=delimiter, strict=True))
    except (UnicodeDecodeError, csv.Error, StopIteration) as error:
        raise BadRow(f"no row of fields ({str(error)[:60]})") from None


Fields = dict[str, tuple[str, Callable[[Any], Any]]]


def fields_of(names: Sequence[str], reading: Reading, columns: Columns) -> Fields:
    """What each column that matters is, and how its text becomes a value."""
    found: Fields = {}
    for what in KNOWN:
        name, unit = _asked(what, names, reading) or _found(what, names) or ("", "s")
        if name:
            found[what] = name, _moment(unit) if what == "arrival" else _number
    for what in ("prompt", "output"):
        if what not in found:
            raise BadFile(
                f"No column of {columns.source} is known as {what} tokens: "
                f"{', '.join(names)[:200]}.",
                f"Name it: --columns {what}=NAME.",
            )
    if "arrival" not in found:
        columns.note("No column is the arrival: all requests arrive at 0 s.")
    return found


def _asked(what: str, names: Sequence[str], reading: Reading) -> tuple[str, str] | None:
    """The column that was named, with its unit.

    Raises:
        BadValue: it is not there.
    """
    asked = reading.names.get(what)
    if asked is None:
        return None
    name, colon, unit = asked.rpartition(":")
    if not colon or unit not in SCALES:
        name, unit = asked, "s"
    if name not in names:
        raise BadValue(
            f"--columns {what}={asked[:60]}: no column has that name.",
            f"There are {', '.join(names)[:200]}.",
        )
    return name, unit


def _found(what: str, names: Sequence[str]) -> tuple[str, str] | None:
    folded = {re.sub(r"[^a-z]", "", name.lower()): name for name in reversed(names)}
    for known in KNOWN[what]:
        if known in folded:
            return folded[known], "s"
    if what == "arrival":
        return next(((folded[k], unit) for k, unit in UNITS.items() if k in folded), None)
    return None


def _number(value: Any) -> Any:
    """A text as a number where it is one; what it is not is for the columns to refuse."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    return int(text) if text.isdecimal() and len(text) < 19 else text


def _moment(unit: str) -> Callable[[Any], Any]:
    """Seconds of a number in a unit, or of a date."""
    scale = SCALES[unit]

    def convert(value: Any) -> Any:
        try:
            return float(value) * scale
        except (TypeError, ValueError, OverflowError):
            return _date(value)

    return convert


def _date(value: Any) -> Any:
    try:
        moment = datetime.fromisoformat(value.strip())
    except (AttributeError, TypeError, ValueError):
        raise BadRow("an arrival that is neither a number nor a date") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
