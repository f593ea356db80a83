"""Lines of a log of any size that hold a mark, each without what machines put around it.

    bytes ─► blocks of whole lines ─► lines that hold a mark ─► Line(number, text, rank, where)

Only lines with a mark are looked at, so that a log of gigabytes reads at the speed of a search.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from kvplan.logs.prefixes import messages
from kvplan.logs.source import LONGEST_LINE, Blocks, Source

MOST_AFTER = 32  # lines of a cut message or command, in the block that it begins in
LONGEST_AFTER = 1000
_LEVEL = re.compile(r"\b(?:INFO|WARNING|ERROR|DEBUG) \d\d-\d\d ")


@dataclass(frozen=True, slots=True)
class Line:
    """A message without its prefixes.

    ``number`` counts from 1; ``rank`` is who said it (``TP0``, ``DP1 TP3``), None where none is
    named; ``where`` is the place that printed it (``kv_cache_utils.py:1286``), ``raw`` the message
    with its prefixes. ``after`` are the lines below it that no logger began, of a message that
    terminals and forums cut.
    """

    number: int
    text: str
    rank: str | None = None
    where: str = ""
    raw: str = ""
    after: tuple[str, ...] = ()


@dataclass(slots=True)
class MarkedLines:
    """The lines of a source that hold a mark; ``marks`` may be changed while they are read.

    ``count`` is the lines read so far, of all kinds; ``openings`` are texts of messages that are
    found cut over several lines.
    """

    blocks: Blocks
    marks: tuple[bytes, ...]
    openings: tuple[str, ...] = ()
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
                opened = end >= 0 and any(opening in raw for opening in self.openings)
                after = _after(block, end + 1) if opened else ()
                for message in messages(raw):
                    yield Line(number, *message, after)
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


def marked_lines(source: Source, marks: Iterable[str], openings: Iterable[str] = ()) -> MarkedLines:
    """The lines of a path, ``-`` (standard input), bytes, or a text of several lines."""
    return MarkedLines(Blocks(source), encoded(marks), tuple(openings))


def encoded(marks: Iterable[str]) -> tuple[bytes, ...]:
    """Marks as they are searched: none that holds another."""
    kept: list[str] = []
    for mark in sorted(set(marks), key=len):
        if not any(shorter in mark for shorter in kept):
            kept.append(mark)
    return tuple(mark.encode() for mark in kept)


def _after(block: bytes, place: int) -> tuple[str, ...]:
    """What a cut message goes on with: lines up to the next that has a logger's prefix."""
    found: list[str] = []
    while len(found) < MOST_AFTER and place < len(block):
        end = block.find(b"\n", place)
        end = len(block) if end < 0 else end
        raw = block[place : min(end, place + LONGEST_AFTER)].decode("utf-8", "replace")
        said = list(messages(raw))
        if len(said) != 1 or said[0].where or said[0].rank or _LEVEL.search(raw):
            break
        found.append(said[0].text)
        place = end + 1
    return tuple(found)


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
