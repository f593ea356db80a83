"""A sweep's figures over what was swept first: latency, throughput, preemptions, cache in use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from kvplan.charts.base import colours, load_altair
from kvplan.core.errors import BadValue
from kvplan.simulation.sweep import SweepAnswer

PANELS: Final[tuple[tuple[str, Callable[[Mapping[str, Any]], Any]], ...]] = (
    ("first token, p95 (s)", lambda a: a["ttft_s"]["p95"]),
    ("each token, p95 (s)", lambda a: a["tpot_s"]["p95"]),
    ("output tokens/s", lambda a: a["output_tokens_per_s"]),
    ("preempted requests", lambda a: a["preemption_rate"]),
    ("cache in use, peak", lambda a: a["kv_usage"]["peak"]),
)


def chart(answer: SweepAnswer) -> Any:
    """A panel a figure; the other axes are colours.

    Raises:
        BadValue: no point was answered.
    """
    alt = load_altair()
    answered = [point for point in answer.points if point.is_answered]
    if not answered:
        raise BadValue("No point of the sweep was answered: nothing to plot.")
    first, *others = (axis.name for axis in answer.axes)
    rows = [
        {
            "at": point.at[first],
            "series": ", ".join(f"{name} {point.at[name]}" for name in others) or "all",
            **{title: read(point.answer) for title, read in PANELS},
        }
        for point in answered
    ]
    names = list(dict.fromkeys(row["series"] for row in rows))
    legend = alt.Legend(title=None, orient="top") if others else None
    kind = "Q" if isinstance(rows[0]["at"], int | float) else "N"
    panels = [
        alt.Chart(alt.Data(values=rows), description=f"{title} over {first}")
        .mark_line(point=True)
        .encode(
            x=alt.X(f"at:{kind}", title=first),
            y=alt.Y(f"{title}:Q", title=title),
            color=alt.Color(
                "series:N",
                sort=names,
                scale=alt.Scale(domain=names, range=colours(len(names))),
                legend=legend,
            ),
        )
        .properties(width=300, height=150)
        for title, _ in PANELS
    ]
    return alt.concat(*panels, columns=2)
