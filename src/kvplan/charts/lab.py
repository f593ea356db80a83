"""Quality against bytes: one point a cache; caches that stand in one place share a label."""

from __future__ import annotations

from typing import Any

from kvplan.charts.base import COLOURS, load_altair
from kvplan.core.errors import BadValue
from kvplan.core.units import MIB
from kvplan.lab.answer import LabAnswer
from kvplan.lab.figures import Row

SAME = ("the full cache's answer", "another")
NEAR = 0.01  # of the longest axis: points that near have one label


def chart(answer: LabAnswer) -> Any:
    """Each cache by the bytes it held and the perplexity it left.

    Raises:
        BadValue: no perplexity was measured.
    """
    points = [_point(row) for row in answer.rows if row.perplexity and row.measured_bytes]
    if not points:
        raise BadValue("There is no perplexity to plot.", "Ask for it with --passages 3.")
    alt = load_altair()
    shared = {
        "x": alt.X("MiB:Q", title="cache (MiB, measured)", scale=alt.Scale(zero=False, padding=30)),
        "y": alt.Y("perplexity:Q", title="perplexity", scale=alt.Scale(zero=False, padding=20)),
        "tooltip": ["cache:N", "bytes:Q", "perplexity:Q", "to full:Q", "answer:N"],
    }
    colour = alt.Color(
        "answer:N",
        scale=alt.Scale(domain=list(SAME), range=list(COLOURS[:2])),
        legend=alt.Legend(title=None, orient="top"),
    )
    title = f"Quality against bytes: {answer.model}"
    return alt.layer(
        alt.Chart(alt.Data(values=points)).mark_point(filled=True, size=80).encode(
            color=colour, **shared
        ),
        *(
            alt.Chart(alt.Data(values=rows)).mark_text(align=align, dx=dx, dy=-9).encode(
                text="cache:N", **shared
            )
            for rows, align, dx in _labels(points)
        ),
        title=title,
        description=f"{title}, {answer.passages} passages of {answer.passage_tokens:,} tokens",
    ).properties(width=560, height=340)  # fmt: skip


def _point(row: Row) -> dict[str, Any]:
    assert row.perplexity is not None
    return {
        "cache": row.cache,
        "bytes": row.measured_bytes,
        "MiB": row.measured_bytes / MIB,
        "perplexity": row.perplexity.value,
        "to full": row.perplexity.ratio(row.full_perplexity or row.perplexity),
        "answer": SAME[not row.identical_output],
    }


def _labels(points: list[dict[str, Any]]) -> list[tuple[list[dict[str, Any]], str, int]]:
    """Labels to the right of points in the left half, and the other way round."""
    places: dict[tuple[int, int], dict[str, Any]] = {}
    most = max(point["bytes"] for point in points)
    worst = max(point["perplexity"] for point in points)
    for point in points:
        at = (round(point["bytes"] / most / NEAR), round(point["perplexity"] / worst / NEAR))
        if at in places:
            places[at]["cache"] += f", {point['cache']}"
        else:
            places[at] = dict(point)
    left = [point for point in places.values() if point["bytes"] <= most / 2]
    right = [point for point in places.values() if point["bytes"] > most / 2]
    return [(left, "left", 6), (right, "right", 6)]
