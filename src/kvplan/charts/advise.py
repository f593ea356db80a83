"""Cost against latency: every option that holds the traffic, and the frontier of those unbeaten."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kvplan.charts.base import COLOURS, load_altair
from kvplan.core.errors import BadValue
from kvplan.planning.advise.answer import AdviseAnswer
from kvplan.planning.advise.outcome import Outcome


def chart(answer: AdviseAnswer) -> Any:
    """Options as points, the frontier as a line, the goal and the choice marked.

    Raises:
        BadValue: no option has a price and a speed.
    """
    alt = load_altair()
    currency = answer.space.pricing.currency
    points = _points(option.outcome for option in answer.options if option.outcome)
    line = _points(answer.frontier)
    if not line:
        raise BadValue("No option has both a price and a speed: there is nothing to plot.")
    title = "Cost against time per token"
    shared = {
        "x": alt.X("cost:Q", title=f"{currency} an hour", scale=alt.Scale(type="log", nice=False)),
        "y": alt.Y(
            "tpot_ms:Q", title="time per token (ms)", scale=alt.Scale(type="log", nice=False)
        ),
        "tooltip": ["cards:N", "layout:N", "weights:N", "cost:Q", "tpot_ms:Q", "ttft_s:Q"],
    }
    met = alt.Color(
        "meets:N",
        title=None,
        scale=alt.Scale(domain=["meets the goals", "does not"], range=[COLOURS[0], COLOURS[1]]),
        legend=alt.Legend(orient="top"),
    )
    layers = [
        alt.Chart(alt.Data(values=line))
        .mark_line(interpolate="step-after", color=COLOURS[6], opacity=0.5)
        .encode(**shared),
        alt.Chart(alt.Data(values=points))
        .mark_point(filled=True, size=45)
        .encode(**shared, color=met),
        alt.Chart(
            alt.Data(values=[p for p in line if p["meets"] == "meets the goals"][:1] or line[:1])
        )
        .mark_text(align="left", dx=9, dy=-9, fontWeight="bold")
        .encode(**shared, text="cards:N"),
    ]
    if answer.goal.tpot_s is not None:
        goal = [{"tpot_ms": answer.goal.tpot_s * 1e3}]
        layers.append(
            alt.Chart(alt.Data(values=goal))
            .mark_rule(strokeDash=[4, 4], color=COLOURS[2])
            .encode(y="tpot_ms:Q")
        )
    names = ", ".join(model.name for model in answer.space.models)
    return alt.layer(*layers, title=f"{names}: {title.lower()}", description=title).properties(
        width=560, height=340
    )


def _points(outcomes: Iterable[Outcome]) -> list[dict[str, Any]]:
    return [
        {
            "cards": f"{one.gpus} × {one.sized.candidate.device.name}",
            "layout": f"{one.replicas} × {one.sized.candidate.layout.said}",
            "weights": one.sized.candidate.variant.stored,
            "cost": one.per_hour,
            "tpot_ms": one.served.tpot_s * 1e3,
            "ttft_s": one.served.ttft_s,
            "meets": "meets the goals" if one.meets else "does not",
        }
        for one in outcomes
        if one.served is not None and one.per_hour
    ]
