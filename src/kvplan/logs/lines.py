"""Lines of a log of any size, without what machines put around them.

    bytes ─► blocks of whole lines ─► lines that hold a mark ─► Line(number, text, rank, where)

Only lines with a mark are looked at, so that a log of gigabytes reads at the speed of a search.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

Source = str | Path | bytes


@dataclass(frozen=True, slots=True)
class Line:
    """A message without its prefixes.

    ``number`` counts from 1; ``rank`` is who said it (``TP0``, ``DP1 TP3``), None where none is
    named; ``where`` is the place that printed it (``kv_cache_utils.py:1286``), ``raw`` all of it.
    """

    number: int
    text: str
    rank: str | None = None
    where: str = ""
    raw: str = ""


@dataclass(slots=True)
class MarkedLines:
    """The lines of a source that hold a mark; ``count`` and ``notes`` are whole when it is read."""

    name: str
    blocks: Iterator[bytes]
    marks: Sequence[str]
    count: int = 0
    notes: list[str] = field(default_factory=list)

    def __iter__(self) -> Iterator[Line]:
        for block in self.blocks:
            for raw in block.decode("utf-8", "replace").splitlines():
                self.count += 1
                if any(mark in raw for mark in self.marks):
                    yield Line(self.count, raw.strip(), raw=raw)


def marked_lines(source: Source, marks: Sequence[str]) -> MarkedLines:
    """The lines of a path, ``-`` (standard input) or bytes."""
    if isinstance(source, bytes):
        return MarkedLines("bytes", iter((source,)), marks)
    if source == "-":
        return MarkedLines("-", iter((sys.stdin.buffer.read(),)), marks)
    return MarkedLines(str(source), iter((Path(source).read_bytes(),)), marks)
