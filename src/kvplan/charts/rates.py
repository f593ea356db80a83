"""The search for the largest rate: latency of every rate that was run, and the goal as a line."""

from __future__ import annotations

from typing import Any

from kvplan.charts.base import COLOURS, load_altair
from kvplan.simulation.find_rate import FindRateAnswer

TITLES = {"ttft_s": "first token (s)", "tpot_s": "each token after (s)"}


def chart(answer: FindRateAnswer) -> Any:
    """A panel for each goal, its dots coloured by whether the rate meets all of them."""
    alt = load_altair()
    goals = {"ttft_s": answer.goal.ttft_s, "tpot_s": answer.goal.tpot_s}
    panels = [_panel(alt, answer, name, most) for name, most in goals.items() if most is not None]
    found = "no rate" if answer.rate is None else f"{answer.rate:,.3g} requests/s"
    return alt.hconcat(*panels, title=f"{found} at {answer.goal.percentile}")


def _panel(alt: Any, answer: FindRateAnswer, name: str, most: float) -> Any:
    rows = [
        {
            "rate": rate,
            "seconds": found[name][answer.goal.percentile],
            "meets": "meets the goal" if answer.goal.missed(found) is None else "misses it",
        }
        for rate, found in answer.runs
    ]
    words = ["meets the goal", "misses it"]
    x = alt.X("rate:Q", title="requests/s", scale=alt.Scale(type="log"))
    dots = (
        alt.Chart(alt.Data(values=rows), description=f"{TITLES[name]} over the rate")
        .mark_point(filled=True, size=60)
        .encode(
            x=x,
            y=alt.Y("seconds:Q", title=TITLES[name]),
            color=alt.Color(
                "meets:N",
                scale=alt.Scale(domain=words, range=list(COLOURS[:2])),
                legend=alt.Legend(title=None, orient="top"),
            ),
            tooltip=["rate:Q", "seconds:Q", "meets:N"],
        )
    )
    line = alt.Chart(alt.Data(values=[{"goal": most}])).mark_rule(strokeDash=[4, 4])
    return (dots + line.encode(y="goal:Q")).properties(width=320, height=240)
