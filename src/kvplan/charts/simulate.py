"""A run over time: the cache in use, who runs and waits, hits and preemptions."""

from __future__ import annotations

from typing import Any, Final

from kvplan.charts.base import COLOURS, load_altair
from kvplan.core.errors import BadValue
from kvplan.simulation.outcome import Outcome

POINTS: Final = 800  # of a curve
ALWAYS: Final = ("in use", "running")  # other curves only where they leave nought


def chart(answer: Any) -> Any:
    """The course of the first run; of a sweep its figures over what was swept.

    Raises:
        BadValue: an answer that has no course.
    """
    if hasattr(answer, "points"):
        from kvplan.charts.sweep import chart as sweep_chart

        return sweep_chart(answer)
    if hasattr(answer, "goal"):
        from kvplan.charts.rates import chart as rates_chart

        return rates_chart(answer)
    if not getattr(answer, "runs", None):
        raise BadValue("Scenarios without a clock have no course to plot.")
    alt = load_altair()
    rows = timeline_rows(answer.runs[0].outcome)
    curves = (
        (("in use",), "cache in use", ".0%"),
        (("running", "waiting"), "requests", ",d"),
        (("hits",), "prefix hits so far", ".0%"),
        (("preemptions",), "preemptions so far", ",d"),
    )
    told = [one for one in curves if one[0][0] in ALWAYS or any(row[one[0][0]] for row in rows)]
    panels = [_panel(alt, rows, *one, last=one is told[-1]) for one in told]
    title = f"{answer.plan.model.name} on {answer.plan.node.device.title}, {answer.plan.engine}"
    return alt.vconcat(*panels, title=title, spacing=8).resolve_scale(color="independent")


def timeline_rows(outcome: Outcome) -> list[dict[str, float]]:
    """At most ``POINTS`` rows of the timeline, evenly."""
    line = outcome.timeline
    count = len(line.time_s)
    places = sorted({round(place * (count - 1) / max(POINTS - 1, 1)) for place in range(POINTS)})
    return [
        {
            "time": float(line.time_s[place]),
            "in use": float(line.used_blocks[place] / max(outcome.num_blocks, 1)),
            "running": int(line.running[place]),
            "waiting": int(line.waiting[place]),
            "hits": float(line.hit_tokens[place] / max(int(line.queried_tokens[place]), 1)),
            "preemptions": int(line.preemptions[place]),
        }
        for place in places
        if count
    ]


def _panel(
    alt: Any,
    rows: list[dict[str, float]],
    names: tuple[str, ...],
    title: str,
    fmt: str,
    *,
    last: bool,
) -> Any:
    """One curve, or several with a legend, as steps over time."""
    long = [
        {"time": row["time"], "what": name, "value": row[name]} for row in rows for name in names
    ]
    legend = alt.Legend(title=None, orient="top") if len(names) > 1 else None
    scale = alt.Scale(domain=[0, 1]) if fmt.endswith("%") else alt.Scale(domainMin=0)
    return (
        alt.Chart(alt.Data(values=long), description=f"{title}: {', '.join(names)} over time")
        .mark_line(interpolate="step-after", strokeWidth=1.2)
        .encode(
            x=alt.X("time:Q", title="seconds" if last else None),
            y=alt.Y("value:Q", title=title, axis=alt.Axis(format=fmt, tickCount=4), scale=scale),
            color=alt.Color(
                "what:N",
                sort=list(names),
                scale=alt.Scale(domain=list(names), range=list(COLOURS[: len(names)])),
                legend=legend,
            ),
            tooltip=["what:N", alt.Tooltip("time:Q", format=",.2f"), "value:Q"],
        )
        .properties(width=620, height=90)
    )
