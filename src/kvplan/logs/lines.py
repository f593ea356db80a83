"""Lines of a log of any size that hold a mark, each without what machines put around it.

    bytes ─► blocks of whole lines ─► lines that hold a mark ─► Line(number, text, rank, where)

Only lines with a mark are looked at, so that a log of gigabytes reads at the speed of a search.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from kvplan.logs.prefixes import messages
from kvplan.logs.source import LONGEST_LINE, Blocks, Source


@dataclass(frozen=True, slots=True)
class Line:
    """A message without its prefixes.

    ``number`` counts from 1; ``rank`` is who said it (``TP0``, ``DP1 TP3``), None where none is
    named; ``where`` is the place that printed it (``kv_cache_utils.py:1286``), ``raw`` the message
    with its prefixes.
    """

    number: int
    text: str
    rank: str | None = None
    where: str = ""
    raw: str = ""


@dataclass(slots=True)
class MarkedLines:
    """The lines of a source that hold a mark; ``marks`` may be changed while they are read.

    ``count`` is the lines read so far, of all kinds.
    """

    blocks: Blocks
    marks: tuple[bytes, ...]
    count: int = 0
    notes: list[str] = field(default_factory=list)

    def __iter__(self) -> Iterator[Line]:
        for block in self.blocks:
            number, place = self.count + 1, 0
            for start in _starts(block, self.marks):
                number += block.count(b"\n", place, start)
                place = start
                end = block.find(b"\n", start)
                raw = block[start : len(block) if end < 0 else end].decode("utf-8", "replace")
                for message in messages(raw):
                    yield Line(number, *message)
            self.count += block.count(b"\n") + (not block.endswith(b"\n"))
        if self.blocks.cut_lines:
            self.notes.append(
                f"{self.blocks.cut_lines:,} lines are longer than {LONGEST_LINE >> 20} MiB: only "
                "their beginnings are read."
            )

    @property
    def name(self) -> str:
        """What the source is called."""
        return self.blocks.name


def marked_lines(source: Source, marks: Iterable[str]) -> MarkedLines:
    """The lines of a path, ``-`` (standard input), bytes, or a text of several lines."""
    return MarkedLines(Blocks(source), encoded(marks))


def encoded(marks: Iterable[str]) -> tuple[bytes, ...]:
    """Marks as they are searched: none that holds another."""
    kept: list[str] = []
    for mark in sorted(set(marks), key=len):
        if not any(shorter in mark for shorter in kept):
            kept.append(mark)
    return tuple(mark.encode() for mark in kept)


def _starts(block: bytes, marks: Iterable[bytes]) -> list[int]:
    """Where the lines of a block begin that hold a mark, in order."""
    found = set()
    for mark in marks:
        place = block.find(mark)
        while place >= 0:
            found.add(block.rfind(b"\n", 0, place) + 1)
            end = block.find(b"\n", place)
            place = block.find(mark, end) if end >= 0 else -1
    return sorted(found)
