"""A log's lines with what each of them said, for reading beside its explanation."""

from __future__ import annotations

from typing import NamedTuple

from kvplan.core.units import format_bytes
from kvplan.logs.facts import Fact, Start

AROUND = 2  # lines shown before and after one that says something
MOST_LINES = 600
LONGEST = 1000  # characters of a line that are shown


class Marked(NamedTuple):
    """A line and its facts in words; or so many lines that say nothing, left out."""

    number: int = 0
    text: str = ""
    facts: tuple[str, ...] = ()
    failed: bool = False
    skipped: int = 0


def marked(log: str | bytes, start: Start) -> list[Marked]:
    """The lines that say something with some around them."""
    text = log.decode("utf-8", "replace") if isinstance(log, bytes) else log
    lines = text.splitlines()
    said: dict[int, list[str]] = {}
    for fact in start.facts:
        said.setdefault(fact.line, []).append(_words(fact))
    failed = {failure.line for failure in start.failures}
    wanted = sorted({near for line in {*said, *failed} for near in _around(line, len(lines))})
    found: list[Marked] = []
    last = 0
    for number in wanted[:MOST_LINES]:
        if number > last + 1:
            found.append(Marked(skipped=number - last - 1))
        line = lines[number - 1]
        shown = line if len(line) <= LONGEST else f"{line[:LONGEST]}…"
        facts = tuple(dict.fromkeys(said.get(number, ())))
        found.append(Marked(number, shown, facts, number in failed))
        last = number
    if found and last < len(lines):
        found.append(Marked(skipped=len(lines) - last))
    return found


def _around(line: int, most: int) -> range:
    return range(max(1, line - AROUND), min(most, line + AROUND) + 1)


def _words(fact: Fact) -> str:
    value = fact.value
    if isinstance(value, bool | str):
        shown = str(value)[:80]
    elif fact.unit == "bytes":
        shown = format_bytes(round(value))
    else:
        shown = (
            f"{value:,} {fact.unit}".strip()
            if isinstance(value, int)
            else f"{value:,.4g} {fact.unit}".strip()
        )
    rank = f" ({fact.rank})" if fact.rank else ""
    name = fact.name.removesuffix("_bytes").removesuffix("_s").replace("_", " ")
    return f"{name}{rank}: {shown}"
