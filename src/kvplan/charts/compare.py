"""Two measurements: how many times the first each figure of the second is, run by run."""

from __future__ import annotations

from typing import Any

from kvplan.charts.base import colours, load_altair
from kvplan.core.errors import BadValue
from kvplan.measuring.compare import CompareAnswer


def chart(answer: CompareAnswer) -> Any:
    """A dot for each figure of each run that both measured; what is nothing in one has no ratio.

    Raises:
        BadValue: there is no ratio to show.
    """
    alt = load_altair()
    rows = [
        {"run": row.title, "figure": row.figure, "ratio": row.ratio, "verdict": row.verdict}
        for row in answer.rows
        if row.ratio
    ]
    if not rows:
        raise BadValue("The two measurements have no figures whose ratio could be shown.")
    blue, orange, green = colours(3)
    shades = {"better": green, "same": blue, "worse": orange}
    axis = alt.X(
        "ratio:Q",
        title=None,
        scale=alt.Scale(type="log"),
        axis=alt.Axis(format="~g"),
    )
    colour = alt.Color(
        "verdict:N",
        scale=alt.Scale(domain=list(shades), range=list(shades.values())),
        legend=alt.Legend(title=answer.folders[1][:120], orient="top"),
    )
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_circle(size=60)
        .encode(x=axis, y=alt.Y("run:N", sort=None, title=None), color=colour)
        .properties(width=120)
        .facet(
            column=alt.Column("figure:N", sort=None, title=f"times {answer.folders[0]}"[:120]),
        )
    )
