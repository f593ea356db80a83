"""A log to its starts: every reader sees the lines that hold a mark of its own."""

from __future__ import annotations

from kvplan.logs.facts import Begin, Fact, Found, Log, Start
from kvplan.logs.lines import Line, encoded, marked_lines
from kvplan.logs.readers.base import Reader
from kvplan.logs.readers.registry import new_readers
from kvplan.logs.source import Source

MOST_STARTS = 256


def read_log(source: Source) -> Log:
    """The starts that a file, ``-`` or bytes hold.

    Raises:
        BadFile: a file that is no text.
        SourceUnreachable: it cannot be read.
    """
    gathered = [_Gathered(reader) for reader in new_readers()]
    openings = {text for each in gathered for text in each.reader.openings}
    lines = marked_lines(source, _marks(gathered), openings)
    signed = 0
    for line in lines:
        for each in gathered:
            each.take(line)
        if signed != sum(1 for each in gathered if each.signed):
            signed = sum(1 for each in gathered if each.signed)
            lines.marks = encoded(_marks(gathered))
    for each in gathered:
        each.finish()
    starts = _chosen(gathered)
    return Log(source=lines.name, starts=starts, lines=lines.count, notes=tuple(lines.notes))


class _Gathered:
    """What one reader found."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.starts: list[Start] = []
        self.signed = 0

    def take(self, line: Line) -> None:
        """Add what a line says to the start it belongs to."""
        if any(sign in line.text for sign in self.reader.signs):
            self.signed += 1
        for found in self.reader.read(line):
            self._add(found, line.number)

    def finish(self) -> None:
        """Add what all lines together say."""
        for found in self.reader.finish():
            self._add(found, found.line if isinstance(found, Fact) else 1)

    def _add(self, found: Found, line: int) -> None:
        if isinstance(found, Begin) or not self.starts:
            self._begin(line)
        self.starts[-1].add(found)

    def _begin(self, line: int) -> None:
        if len(self.starts) == MOST_STARTS:
            del self.starts[1]
        self.starts.append(Start(engine=self.reader.engine, first_line=line))


def _marks(gathered: list[_Gathered]) -> set[str]:
    """What to search from here on: all marks, or those of the engines that are known by now.

    As one log may hold several engines, the first sign of every one is searched to the end.
    """
    known = [each for each in gathered if each.signed] or gathered
    searched = {text for e in known for text in (*e.reader.marks, *e.reader.signs)}
    return searched | {each.reader.signs[0] for each in gathered}


def _chosen(gathered: list[_Gathered]) -> tuple[Start, ...]:
    """The starts of the engines whose signs are there, in the order of their lines.

    Without a sign it is the engine whose lines say most; of a line that several print, the first.
    """
    signed = [each for each in gathered if each.signed] or [max(gathered, key=_said)]
    over = {engine for each in signed for engine in each.reader.supersedes}
    kept = [s for each in signed if each.reader.engine not in over for s in each.starts]
    return tuple(sorted(kept, key=lambda start: start.first_line))


def _said(gathered: _Gathered) -> int:
    return sum(len(start.facts) + len(start.failures) for start in gathered.starts)
