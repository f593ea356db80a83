"""Tables for a terminal, for Markdown and for CSV, from the same rows."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
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
        return "\n".join([f"### {self.title}", "", *lines, ""]) if self.title else "\n".join(lines)

    def csv(self) -> str:
        """Comma-separated, the columns' names first."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(self.rows)
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
        grid.add_column(name, justify="right" if side == "r" else "left", overflow="fold")
    for row in table.rows:
        grid.add_row(*row)
    if table.title:
        console.print(table.title, soft_wrap=True)
    console.print(grid)
