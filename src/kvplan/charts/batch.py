"""Tokens a second of each conversation, against how many are decoded together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from kvplan.charts.base import COLOURS, load_altair
from kvplan.core.errors import BadValue
from kvplan.planning.fit import FitAnswer

MOST = 1024  # conversations on the axis, where more fit
BOUND, ESTIMATE = "at most (bandwidth)", "estimate, with its error"


def chart(answer: FitAnswer) -> Any:
    """The bound as a line, the estimate as a line within its band, the asked batch as a rule.

    Raises:
        BadValue: neither is known.
    """
    alt = load_altair()
    rows = [row for batch in batches(answer) for row in _at(answer, batch)]
    if not rows:
        raise BadValue("No bandwidth is known, so that there is no speed to plot.")
    names = list(dict.fromkeys(row["what"] for row in rows))
    x = alt.X(
        "conversations:Q",
        title="conversations decoded together",
        scale=alt.Scale(type="log", base=2, nice=False),
        axis=alt.Axis(format=",d", labelOverlap=True, values=batches(answer)),
    )
    y = alt.Y("tokens a second:Q", title="tokens/s of each", scale=alt.Scale(zero=True))
    shade = alt.Color(
        "what:N",
        scale=alt.Scale(domain=names, range=[COLOURS[0], COLOURS[2]][: len(names)]),
        legend=alt.Legend(title=None, orient="top", columns=1, labelLimit=300, symbolOpacity=1),
    )
    tooltip = [
        "what:N",
        alt.Tooltip("conversations:Q", format=",d"),
        alt.Tooltip("tokens a second:Q", format=",.1f"),
    ]
    base = alt.Chart(alt.Data(values=rows))
    band = (
        alt.Chart(alt.Data(values=[row for row in rows if "slow" in row]))
        .mark_area(opacity=0.25)
        .encode(x=x, y=alt.Y("slow:Q", title="tokens/s of each"), y2="fast:Q", color=shade)
    )
    asked = alt.Chart(alt.Data(values=[{"conversations": answer.batch}]))
    title = "Speed of each conversation, by how many run"
    marks = [base.mark_line().encode(x=x, y=y, color=shade, tooltip=tooltip)]
    if ESTIMATE in names:
        marks.insert(0, band)
    if answer.batch:
        marks.append(asked.mark_rule(strokeDash=[4, 3], color=COLOURS[1], size=1.5).encode(x=x))
    return alt.layer(
        *marks,
        title=title,
        description=f"{title}: {_words(rows)}",
    ).properties(width=420, height=240)


def batches(answer: FitAnswer) -> list[int]:
    """Powers of two up to what fits or was asked, and both of these."""
    most = max(1, min(max(answer.sequences, answer.batch, 8), MOST))
    powers = {1 << place for place in range(most.bit_length())}
    return sorted(b for b in powers | {most, min(answer.batch, most)} if 0 < b <= most)


def _at(answer: FitAnswer, batch: int) -> Iterator[dict[str, Any]]:
    asked = replace(answer.question.asked, concurrency=batch)
    speed = FitAnswer(replace(answer.question, asked=asked), answer.plan).speed
    if speed is None:
        return
    found = speed.to_dict()
    each, estimate = found["tokens_per_s_per_sequence_floor"], found["estimate"]
    if each:
        yield {"what": BOUND, "conversations": batch, "tokens a second": each}
    if estimate:
        rate, error = estimate["tokens_per_s_per_sequence"], estimate["error"] or 0.0
        yield {
            "what": ESTIMATE,
            "conversations": batch,
            "tokens a second": rate,
            "slow": rate / (1 + error),
            "fast": min(rate * (1 + error), each or rate * (1 + error)),
        }


def _words(rows: list[dict[str, Any]]) -> str:
    """The ends of the last line in words."""
    last = [row for row in rows if row["what"] == rows[-1]["what"]]
    ends = [last[0], last[-1]] if len(last) > 1 else last
    said = (
        f"{row['tokens a second']:,.1f} tokens/s each of {row['conversations']:,}" for row in ends
    )
    return f"{rows[-1]['what']}: {'; '.join(said)}"
