"""Every plot once, as an Altair chart: for a file, a notebook and a page alike.

A module a verb, named for it, whose ``chart`` draws an answer; where a page shows several plots of
one, its ``PARTS`` name them, the first being ``chart``. Needs the ``plot`` extra; without it an
error says which to install.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from kvplan.core.errors import UnknownName
from kvplan.planning.answer import Answer


def chart_of(answer: Answer, part: str = "") -> Any:
    """The Altair chart that shows an answer, or one part of it.

    Raises:
        BadValue: the ``plot`` extra is not installed, or there is nothing to plot.
        UnknownName: the verb has no such part.
    """
    parts = parts_of(answer.verb)
    draw = parts.get(part or next(iter(parts)))
    if draw is None:
        raise UnknownName("plot", part[:60], parts)
    return draw(answer)


def parts_of(verb: str) -> Mapping[str, Callable[[Any], Any]]:
    """The plots of a verb's answers by name, the main one first."""
    module = import_module(f"kvplan.charts.{verb}")
    found: Mapping[str, Callable[[Any], Any]] = getattr(module, "PARTS", {"chart": module.chart})
    return found


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
