"""Conversations that run at once, against their length."""

from __future__ import annotations

from typing import Any

from kvplan.charts.base import COLOURS, TOKENS, load_altair
from kvplan.core.errors import BadValue
from kvplan.core.units import MAX_TOKENS
from kvplan.planning.fit import FitAnswer

SHORTEST = 1024
LONGEST = 131072  # where a model declares no maximum
STEPS_A_DOUBLING = 4


def chart(answer: FitAnswer) -> Any:
    """A falling line on logarithmic axes, the asked length as a point.

    Raises:
        BadValue: nothing fits at any length.
    """
    alt = load_altair()
    asked = answer.question.asked.context
    rows = [_at(answer, tokens) for tokens in lengths(answer) if answer.plan.starts]
    rows = [row for row in rows if row["conversations"] > 0]
    if not rows:
        raise BadValue("No conversation fits, so that there is nothing to plot.")
    x = alt.X(
        "tokens:Q",
        title="length of each (tokens)",
        scale=alt.Scale(type="log", base=2, nice=False),
        axis=alt.Axis(labelExpr=TOKENS, labelOverlap=True),
    )
    y = alt.Y(
        "conversations:Q",
        title="conversations at once",
        scale=alt.Scale(type="log"),
        axis=alt.Axis(tickCount=5, labelOverlap=True, format=",d"),
    )
    tooltip = [alt.Tooltip("tokens:Q", format=",d"), alt.Tooltip("conversations:Q", format=",d")]
    line = alt.Chart(alt.Data(values=rows)).mark_line(color=COLOURS[0], interpolate="step-after")
    here = [_at(answer, asked)] if answer.sequences else []
    point = alt.Chart(alt.Data(values=here)).mark_point(
        filled=True, size=90, color=COLOURS[1], opacity=1
    )
    words = point.mark_text(align="left", dx=9, dy=-9, color=COLOURS[1], fontWeight="bold").encode(
        text=alt.Text("conversations:Q", format=",d")
    )
    title = "Conversations at once, by their length"
    return alt.layer(
        *(
            mark.encode(x=x, y=y, tooltip=tooltip)
            for mark in (line, point, words)[: 3 if here else 1]
        ),
        title=title,
        description=f"{title}: {describe(rows)}",
    ).properties(width=420, height=240)


def lengths(answer: FitAnswer) -> list[int]:
    """Lengths from 1,024 to the longest that is known, evenly in doublings."""
    asked = answer.question.asked.context
    longest = min(max(answer.plan.model.max_context_tokens or LONGEST, asked), MAX_TOKENS)
    first = min(SHORTEST, asked, longest)
    found, step = {asked, longest}, 0
    while (tokens := round(first * 2 ** (step / STEPS_A_DOUBLING))) < longest:
        found.add(tokens)
        step += 1
    return sorted(found)


def describe(rows: list[dict[str, int]]) -> str:
    """The ends of the line in words."""
    ends = [rows[0], rows[-1]] if len(rows) > 1 else rows
    return "; ".join(f"{row['conversations']:,} of {row['tokens']:,} tokens" for row in ends)


def _at(answer: FitAnswer, tokens: int) -> dict[str, int]:
    return {"tokens": tokens, "conversations": answer.plan.capacity(tokens).sequences}
