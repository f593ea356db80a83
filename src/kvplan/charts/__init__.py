"""Every plot once, as an Altair chart: for a file, a notebook and a page alike.

A module a verb, named for it, whose ``chart`` draws an answer. Needs the ``plot`` extra; without it
an error says which to install.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from kvplan.planning.answer import Answer


def chart_of(answer: Answer) -> Any:
    """The Altair chart that shows an answer.

    Raises:
        BadValue: the ``plot`` extra is not installed, or there is nothing to plot.
    """
    return import_module(f"kvplan.charts.{answer.verb}").chart(answer)


def save(answer: Answer, path: Path) -> None:
    """The chart of an answer as .png, .svg or .html.

    Raises:
        BadValue: the ``plot`` extra is not installed, or there is nothing to plot.
    """
    chart = chart_of(answer)
    if path.suffix.lower() == ".png":
        chart.save(str(path), scale_factor=2)
    elif path.suffix.lower() == ".html":
        # Altair's JavaScript comes with vl-convert: the file opens without a network.
        chart.save(str(path), inline=True)
    else:
        chart.save(str(path))
