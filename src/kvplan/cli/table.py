"""Tables for a terminal and for Markdown from the same rows, and values for CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

NONE = "–"  # in a cell: there is no such figure
WIDTH_OF_A_PIPE = 200  # columns, where the output is no terminal


@dataclass(frozen=True, slots=True)
class Table:
    """A title, column names and rows of text.

    ``align`` has a letter a column: ``l`` for text, ``r`` for figures.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    align: str

    def markdown(self) -> str:
        """A pipe table under a heading."""
        edge = ["---:" if side == "r" else "---" for side in self.align]
        lines = [_pipes(self.columns), _pipes(edge), *map(_pipes, self.rows)]
        title = [f"### {self.title}", ""] if self.title else []
        return "\n".join([*title, *lines, ""])


def plain(text: str) -> str:
    """A text whose control characters cannot reach a terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Comma-separated values, the columns' names first."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()


def _pipes(cells: Sequence[str]) -> str:
    escaped = [cell.replace("|", "\\|") for cell in cells]
    return f"| {' | '.join(escaped)} |"


def print_table(table: Table) -> None:
    """The table on the terminal, as wide as it needs where the output is no terminal."""
    import shutil
    import sys

    from rich import box
    from rich.console import Console
    from rich.table import Table as Grid

    console = Console(
        width=shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDTH_OF_A_PIPE,
        highlight=False,
        markup=False,
        emoji=False,
    )
    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False)
    for name, side in zip(table.columns, table.align, strict=True):
        grid.add_column(plain(name), justify="right" if side == "r" else "left", overflow="fold")
    for row in table.rows:
        grid.add_row(*map(plain, row))
    if table.title:
        console.print(plain(table.title), soft_wrap=True)
    console.print(grid)
