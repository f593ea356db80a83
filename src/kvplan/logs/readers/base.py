"""The contract of an engine's reader: a line to what it says.

    class SomeReader(Reader):
        engine = "vllm"
        signs = ("vLLM API server version",)       only this engine prints these
        marks = ("KV cache", "GiB")                a line with none of these is never looked at
        rows = rows(
            "Available KV cache memory: <available_kv_bytes:size>",
            r"GPU KV cache size: <kv_tokens:whole> tokens",
        )

A row is a regular expression in which ``<name:kind>`` takes a figure of that name; a row is tried
where its longest plain text is in the line. Write no ``.*`` or nested repetition in a row: a log is
untrusted, and each field is bounded already. What needs a state (an operation that is repeated, a
message over several lines) overrides ``read``; what is told of all lines together, ``finish``. A
reader lives for one log.

Keep ``marks`` few and short (a dozen, each rare in what a running server prints): every one is
searched in all of the log.
"""

from __future__ import annotations

import re
from abc import ABC
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, NamedTuple

from kvplan.logs import numbers
from kvplan.logs.facts import LONGEST_TEXT, Fact, Failure, Found, Value
from kvplan.logs.lines import Line
from kvplan.logs.readers.marks import longest_text

_FIELD = re.compile(r"<(\w+):(\w+)>")
# A figure ends with a digit: the comma or full stop behind it is the sentence's.
_NUMBER = r"-?\d{1,18}(?:[.,]\d{1,18}){0,6}"
_WHOLE = r"-?\d{1,18}(?:,\d{1,18}){0,6}"
# What a kind matches, and how its text is read.
KINDS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "whole": (_WHOLE, numbers.whole),
    "number": (_NUMBER, numbers.decimal),
    "percent": (_NUMBER, lambda text: _hundredth(numbers.decimal(text))),
    "size": (_NUMBER + r"\s?(?:(?:[KMGT]i?)?B|bytes)\b", numbers.size),
    "of_total": (_NUMBER, lambda text: numbers.size(f"{text} GiB")),  # 43.93/44.42 GiB
    "mib": (_NUMBER, lambda text: numbers.size(f"{text} MiB")),  # 49133 >= 1024 MiB
    "gb": (_NUMBER + r"\s?[KMGT]B\b", lambda text: numbers.size(text, decimal_gb=True)),
    "bytes": (_WHOLE, numbers.whole),
    "word": (r"[\w./:+@-]{1,200}", str),
    "words": (r"\w{1,40}(?: \w{1,40}){0,3}?", str),
    "name": (r"[A-Za-z0-9_-]{1,80}", lambda text: text.replace("_", " ")),
    "quoted": (r"""['"]?[^'"\n]{1,300}['"]?""", lambda text: text.strip("'\"")),
}


def _hundredth(value: float | None) -> float | None:
    return None if value is None else round(value / 100, 9)


class Row(NamedTuple):
    """One wording: ``mark`` is in every line it matches; ``fields`` are names and how to read them.

    ``says`` is what it means beside its figures; ``failure`` the code of the error that it is.
    """

    mark: str
    pattern: re.Pattern[str]
    fields: tuple[tuple[str, Callable[[str], Any]], ...]
    failure: str = ""
    says: Mapping[str, Value] = {}

    def match(self, text: str) -> dict[str, Value] | None:
        """The figures of a line, None where it is another line."""
        if self.mark not in text:
            return None
        found = self.pattern.search(text)
        if found is None:
            return None
        read = ((name, how(part)) for (name, how), part in self._parts(found) if part)
        return {name: value for name, value in read if value is not None} | dict(self.says)

    def _parts(self, found: re.Match[str]) -> Iterator[tuple[Any, str | None]]:
        return zip(self.fields, found.groups(), strict=True)


def row(template: str, failure: str = "", **says: Value) -> Row:
    """A row of its template; every plain group of the template is written ``(?:…)``."""
    fields = tuple((name, KINDS[kind][1]) for name, kind in _FIELD.findall(template))
    pattern = _FIELD.sub(lambda field: f"({KINDS[field[2]][0]})", template)
    return Row(longest_text(pattern), re.compile(pattern), fields, failure, says)


def rows(*templates: str) -> tuple[Row, ...]:
    """Rows that state facts."""
    return tuple(map(row, templates))


class Reader(ABC):
    """The lines of one engine; the first of its ``signs`` is the surest.

    ``supersedes`` names engines whose lines this one prints too (Ollama runs llama.cpp): where a
    sign of this one is seen, they are told as its own. ``openings`` are texts of messages that are
    found cut: a line with one of them has the lines below it.
    """

    engine: ClassVar[str]
    signs: ClassVar[tuple[str, ...]]
    marks: ClassVar[tuple[str, ...]]
    supersedes: ClassVar[tuple[str, ...]] = ()
    openings: ClassVar[tuple[str, ...]] = ()
    rows: ClassVar[tuple[Row, ...]] = ()

    def read(self, line: Line) -> Iterator[Found]:
        """What a line says; nothing where it is none of this engine's."""
        for wording in self.rows:
            figures = wording.match(line.text)
            if figures is not None:
                yield from found(line, figures, wording.failure)

    def finish(self) -> Iterator[Found]:
        """What all lines together say, once they are read; most readers have said it before."""
        return iter(())


def found(line: Line, figures: dict[str, Value], failure: str = "") -> Iterator[Found]:
    """Figures of a line as facts; as a failure with its numbers too where the line is an error."""
    text = line.text[:LONGEST_TEXT]
    for name, value in figures.items():
        yield Fact(name, value, line.number, line.rank, text)
    if failure:
        yield Failure(failure, line.number, line.rank, text, figures)
