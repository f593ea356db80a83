"""Tables of the generated pages."""

from __future__ import annotations

from collections.abc import Iterable


def markdown_table(columns: Iterable[str], lines: Iterable[Iterable[str]], right: int = 1) -> str:
    """A Markdown table; the columns from ``right`` on are figures."""
    names = list(columns)
    edge = ["---" if place < right else "---:" for place in range(len(names))]
    text = [names, edge, *(list(line) for line in lines)]
    return "\n".join(f"| {' | '.join(line)} |" for line in text)
