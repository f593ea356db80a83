"""The report of a folder: its tables and plots as one page that opens without a network."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Final

from kvplan.cli.measure_tables import explanation, tables
from kvplan.cli.table import Table, plain
from kvplan.core.errors import KvplanError
from kvplan.measuring.answer import MeasureAnswer

REPORT: Final = "report.html"
STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; margin: 1rem 0 } caption { text-align: left; font-weight: 600 }
th, td { padding: .2rem .7rem; border-bottom: 1px solid #ddd; text-align: left }
.r { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
.scroll { overflow-x: auto }
iframe { border: 0; width: 100%; height: 60rem }
"""


def write_report(answer: MeasureAnswer, folder: Path) -> str | None:
    """The page in the folder; why it has no plots, where it has none."""
    charts, said = _charts(answer)
    title = escape(plain(answer.experiment.server.title))
    body = [f"<h1>{title}</h1>", *map(_html, tables(answer)), charts]
    body += [f"<p>{escape(plain(line))}</p>" for line in explanation(answer)]
    body += [f"<p>Warning: {escape(plain(line))}</p>" for line in answer.warnings]
    said_where = ", ".join(
        f"{key} {value}"
        for key, value in answer.environment.items()
        if value and not isinstance(value, dict)
    )
    body.append(f"<p><small>{escape(plain(said_where))}</small></p>")
    page = (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title>"
        f"<style>{STYLE}</style><main>{''.join(body)}</main></html>\n"
    )
    (folder / REPORT).write_text(page, encoding="utf-8", errors="replace")
    return said


def _charts(answer: MeasureAnswer) -> tuple[str, str | None]:
    """The plots in a frame of their own, their script inside."""
    try:
        from kvplan.charts.measure import chart

        made = chart(answer).to_html(inline=True)
    except KvplanError as error:
        return "", f"The report has no plots: {error}"
    return f'<iframe title="plots" srcdoc="{escape(made, quote=True)}"></iframe>', None


def _html(table: Table) -> str:
    def cells(tag: str, row: tuple[str, ...]) -> str:
        return "".join(
            f"<{tag}{' class=r' if side == 'r' else ''}>{escape(plain(cell))}</{tag}>"
            for cell, side in zip(row, table.align, strict=True)
        )

    rows = "".join(f"<tr>{cells('td', row)}</tr>" for row in table.rows)
    caption = f"<caption>{escape(plain(table.title))}</caption>" if table.title else ""
    head = cells("th", table.columns)
    return f"<div class=scroll><table>{caption}<tr>{head}</tr>{rows}</table></div>"
