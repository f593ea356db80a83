"""Quality against bytes: one point a cache, the full cache's perplexity as a line."""

from __future__ import annotations

from typing import Any

from kvplan.charts.base import COLOURS, load_altair
from kvplan.core.errors import BadValue
from kvplan.core.units import MIB
from kvplan.lab.answer import LabAnswer
from kvplan.lab.figures import Row


def chart(answer: LabAnswer) -> Any:
    """Each cache by the bytes it held and the perplexity it left.

    Raises:
        BadValue: no perplexity was measured.
    """
    points = [_point(row) for row in answer.rows if row.perplexity and row.measured_bytes]
    if not points:
        raise BadValue("There is no perplexity to plot.", "Ask for it with --passages 3.")
    alt = load_altair()
    base = alt.Chart(alt.Data(values=points)).encode(
        x=alt.X("MiB:Q", title="cache (MiB, measured)", scale=alt.Scale(zero=False, padding=30)),
        y=alt.Y("perplexity:Q", title="perplexity", scale=alt.Scale(zero=False, padding=20)),
        tooltip=["cache:N", "bytes:Q", "perplexity:Q", "to full:Q", "identical:N"],
    )
    same = alt.Color(
        "identical:N",
        scale=alt.Scale(domain=["the full cache's answer", "another"], range=list(COLOURS[:2])),
        legend=alt.Legend(title=None, orient="top"),
    )
    title = f"Quality against bytes: {answer.model}"
    return alt.layer(
        base.mark_point(filled=True, size=80).encode(color=same),
        base.mark_text(align="left", dx=7, dy=-5).encode(text="cache:N"),
        title=title,
        description=f"{title}, {answer.passages} passages of {answer.passage_tokens:,} tokens",
    ).properties(width=560, height=340)


def _point(row: Row) -> dict[str, Any]:
    assert row.perplexity is not None
    beside = row.full_perplexity or row.perplexity
    return {
        "cache": row.cache,
        "bytes": row.measured_bytes,
        "MiB": row.measured_bytes / MIB,
        "perplexity": row.perplexity.value,
        "to full": row.perplexity.ratio(beside),
        "identical": "the full cache's answer" if row.identical_output else "another",
    }
