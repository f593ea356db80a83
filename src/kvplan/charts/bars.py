"""Cards as bars of named terms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

from kvplan.charts.base import COLOURS, colours, load_altair
from kvplan.core.ledger import Ledger
from kvplan.core.units import GIB, format_gib


def ledger_bars(ledgers: Mapping[str, Ledger], title: str) -> Any:
    """A bar of named terms for each ledger, the same colour for the same term."""
    alt = load_altair()
    fullest_first = sorted(ledgers.values(), key=lambda ledger: -len(ledger.terms))
    names = list(dict.fromkeys(term.name for ledger in fullest_first for term in ledger))
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
    shown = list(dict.fromkeys(str(row["term"]) for row in sorted(rows, key=itemgetter("place"))))
    return (
        alt.Chart(alt.Data(values=rows), title=title, description=_words(title, ledgers))
        .mark_bar(height=44, stroke="#808080", strokeWidth=0.5)
        .encode(
            x=alt.X("GiB:Q", title="one card (GiB)", stack="zero", axis=alt.Axis(tickCount=8)),
            y=alt.Y("of:N", title=None, sort=list(ledgers), axis=_labels(alt, len(ledgers) > 1)),
            color=alt.Color(
                "term:N",
                sort=shown,
                scale=alt.Scale(domain=shown, range=_shades(shown)),
                legend=alt.Legend(title=None, orient="top", columns=4, labelLimit=240),
            ),
            order=alt.Order("place:Q"),
            tooltip=["of:N", "term:N", alt.Tooltip("GiB:Q", format=".2f")],
        )
        .properties(width=560, height=70 * len(ledgers))
    )


def _shades(terms: Sequence[str]) -> list[str]:
    """A colour a term; weights and the pool have the same in every bar."""
    fixed = {"weights": COLOURS[0], "kv pool": COLOURS[2], "left free": COLOURS[8]}
    others = iter(colours(len(terms) + len(fixed)))
    free = (colour for colour in others if colour not in fixed.values())
    return [fixed.get(term) or next(free) for term in terms]


def _words(title: str, ledgers: Mapping[str, Ledger]) -> str:
    """The bars for who does not see them."""
    bars = (
        f"{of}: "
        + ", ".join(f"{t.name.replace('_', ' ')} {format_gib(t.num_bytes)}" for t in ledger)
        for of, ledger in ledgers.items()
    )
    return f"{title}. One card, {'; '.join(bars)}"


def _labels(alt: Any, shown: bool) -> Any:
    """The names of bars, where there are several."""
    return alt.Axis(ticks=False, domain=False, labelLimit=260) if shown else None
