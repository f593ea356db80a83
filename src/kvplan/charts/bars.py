"""Cards as bars of named terms."""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from typing import Any

from kvplan.charts.base import colours, load_altair
from kvplan.core.ledger import Ledger
from kvplan.core.units import GIB


def ledger_bars(ledgers: Mapping[str, Ledger], title: str) -> Any:
    """A bar of named terms for each ledger, the same colour for the same term."""
    alt = load_altair()
    names = list(dict.fromkeys(term.name for ledger in ledgers.values() for term in ledger))
    rows = [
        {
            "of": of,
            "term": term.name.replace("_", " "),
            "GiB": term.num_bytes / GIB,
            "place": names.index(term.name),
        }
        for of, ledger in ledgers.items()
        for term in ledger
        if term.num_bytes > 0
    ]
    shown = list(dict.fromkeys(row["term"] for row in sorted(rows, key=itemgetter("place"))))
    return (
        alt.Chart(alt.Data(values=rows), title=title, description=f"{title}: {rows}"[:500])
        .mark_bar(height=44)
        .encode(
            x=alt.X("GiB:Q", title="one card (GiB)", stack="zero"),
            y=alt.Y("of:N", title=None, sort=list(ledgers), axis=_labels(alt, len(ledgers) > 1)),
            color=alt.Color(
                "term:N",
                sort=shown,
                scale=alt.Scale(domain=shown, range=colours(len(shown))),
                legend=alt.Legend(title=None, orient="top", columns=4),
            ),
            order=alt.Order("place:Q"),
            tooltip=["of:N", "term:N", alt.Tooltip("GiB:Q", format=".2f")],
        )
        .properties(width=560, height=70 * len(ledgers))
    )


def _labels(alt: Any, shown: bool) -> Any:
    """The names of bars, where there are several."""
    return alt.Axis(ticks=False, domain=False) if shown else None
