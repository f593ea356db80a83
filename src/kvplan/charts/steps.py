"""What a decode step takes as its context grows: measured, estimated, and the bound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kvplan.charts.base import colours, load_altair

DASHES = ([1, 0], [4, 4], [1, 2])


def step_times(rows: Sequence[dict[str, Any]], title: str) -> Any:
    """Rows of ``variant``, ``context``, ``ms`` and ``what``: dots where measured, else lines."""
    alt = load_altair()
    names = list(dict.fromkeys(row["variant"] for row in rows))
    lines = [what for what in dict.fromkeys(row["what"] for row in rows) if what != "measured"]
    base = alt.Chart(alt.Data(values=list(rows))).encode(
        x=alt.X("context:Q", title="tokens of context"),
        y=alt.Y("ms:Q", title="milliseconds a token", scale=alt.Scale(zero=True)),
        color=alt.Color(
            "variant:N",
            sort=names,
            scale=alt.Scale(domain=names, range=colours(len(names))),
            legend=alt.Legend(title=None, orient="right", labelLimit=400),
        ),
        tooltip=["variant:N", "what:N", "context:Q", alt.Tooltip("ms:Q", format=".2f")],
    )
    dash = alt.StrokeDash(
        "what:N",
        sort=lines,
        scale=alt.Scale(domain=lines, range=list(DASHES[: len(lines)])),
        legend=alt.Legend(title=None, orient="right"),
    )
    dots = base.transform_filter("datum.what == 'measured'").mark_point(filled=True, size=60)
    drawn = base.transform_filter("datum.what != 'measured'").mark_line().encode(strokeDash=dash)
    return (drawn + dots).properties(width=520, height=320, title=title)
