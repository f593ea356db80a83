"""What one conversation keeps as it grows, by kind of layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvplan.charts.base import TOKENS, colours, load_altair, token_ticks
from kvplan.core.errors import BadValue
from kvplan.core.formats import Format
from kvplan.core.model import Model
from kvplan.core.units import GIB, MIB, format_bytes

POINTS = 49  # lengths on the axis, evenly from nothing to the longest
LONGEST = 131072  # where a model declares no maximum


def by_kind(model: Model, fmt: Format, longest: int | None = None) -> Any:
    """Areas of the kinds of layers on top of each other.

    Raises:
        BadValue: the model keeps nothing.
    """
    alt = load_altair()
    end = longest or model.max_context_tokens or LONGEST
    lengths = sorted({round(end * place / (POINTS - 1)) for place in range(POINTS)})
    total = sum(_held(model, fmt, end).values())
    unit, size = ("GiB", GIB) if total >= GIB else ("MiB", MIB)
    rows = [
        {"tokens": tokens, "kind": kind, unit: held / size}
        for tokens in lengths
        for kind, held in _held(model, fmt, tokens).items()
    ]
    kinds = [kind for kind, held in _held(model, fmt, end).items() if held]
    if not kinds:
        raise BadValue(f"{model.name} keeps no cache, so that there is nothing to plot.")
    axis = alt.Axis(labelExpr=TOKENS, values=token_ticks(end))
    title = f"One conversation's cache as it grows, {fmt.name}"
    return (
        alt.Chart(
            alt.Data(values=[row for row in rows if row["kind"] in kinds]),
            title=title,
            description=f"{title}: {format_bytes(total)} at {end:,} tokens, of {', '.join(kinds)}",
        )
        .mark_area(opacity=0.85)
        .encode(
            x=alt.X("tokens:Q", title="tokens so far", scale=alt.Scale(nice=False), axis=axis),
            y=alt.Y(f"{unit}:Q", title=f"cache of one conversation ({unit})", stack="zero"),
            color=alt.Color(
                "kind:N",
                sort=kinds,
                scale=alt.Scale(domain=kinds, range=colours(len(kinds))),
                legend=alt.Legend(title=None, orient="top", columns=2, labelLimit=240),
            ),
            tooltip=[
                alt.Tooltip("tokens:Q", format=",d"),
                "kind:N",
                alt.Tooltip(f"{unit}:Q", format=",.2f"),
            ],
        )
        .properties(width=420, height=240)
    )


def _held(model: Model, fmt: Format, tokens: int) -> Mapping[str, int]:
    """Bytes by kind of layer."""
    found: dict[str, int] = {}
    for layer, count in model.layers():
        kind = layer.kind.replace("_", " ")
        found[kind] = found.get(kind, 0) + layer.stored(tokens, fmt).total * count
    return found
