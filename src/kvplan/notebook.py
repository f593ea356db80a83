"""An answer in a notebook: the command's tables and the page's plots, without script.

>>> import kvplan
>>> "conversations at once" in kvplan.fit("gpt2", gpu="l4")._repr_html_()
True
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from html import escape
from importlib import import_module
from typing import Any

from kvplan.cli.table import Table
from kvplan.core.errors import KvplanError
from kvplan.planning.answer import Answer


def html(answer: Answer) -> str:
    """Tables, then the plots where the ``plot`` extra is installed, then what to know of it."""
    form: Any = import_module(f"kvplan.cli.{answer.verb}_tables")
    parts = [*map(_table, form.tables(answer)), *_plots(answer)]
    parts += [f"<p><em>{escape(text)}</em></p>" for text in answer.warnings]
    return "\n".join(parts)


def _table(table: Table) -> str:
    sides = ["right" if side == "r" else "left" for side in table.align]
    head = "".join(_cell("th", *pair) for pair in zip(table.columns, sides, strict=True))
    rows = (
        "".join(_cell("td", *pair) for pair in zip(row, sides, strict=True)) for row in table.rows
    )
    body = "\n".join(f"<tr>{row}</tr>" for row in rows)
    title = f"<caption>{escape(table.title)}</caption>" if table.title else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(tag: str, text: str, side: str) -> str:
    return f'<{tag} style="text-align: {side}">{escape(text)}</{tag}>'


def _plots(answer: Answer) -> Iterator[str]:
    """Each plot as a picture with its words."""
    from kvplan.charts import chart_of, parts_of

    for part in parts_of(answer.verb):
        try:
            chart = chart_of(answer, part).to_dict()
        except KvplanError:
            continue
        import vl_convert

        drawn = b64encode(vl_convert.vegalite_to_svg(chart).encode()).decode()
        words = escape(str(chart.get("description", part)))
        yield f'<img alt="{words}" src="data:image/svg+xml;base64,{drawn}">'
