"""Reuse by pool where pools were asked for, else what each request reuses."""

from __future__ import annotations

from typing import Any

from kvplan.charts.base import colours, load_altair
from kvplan.simulation.prefix.answer import PrefixAnswer

MOST_BARS = 500  # requests; of more the first


def chart(answer: PrefixAnswer) -> Any:
    """Hit rate against the pool's size, or reused and computed tokens of each request."""
    return _pools(answer) if len({pool.blocks for pool in answer.pools}) > 1 else _requests(answer)


def _pools(answer: PrefixAnswer) -> Any:
    alt = load_altair()
    rows = [
        {"blocks": pool.blocks, "policy": pool.policy, "hit rate": pool.hit_rate}
        for pool in answer.pools
    ]
    title = f"Prompt tokens reused of {answer.prompts.source}"
    lines = (
        alt.Chart(alt.Data(values=rows), title=title, description=f"{title}: {rows}"[:500])
        .mark_line(point=True)
        .encode(
            x=alt.X("blocks:Q", scale=alt.Scale(type="log"), title="pool (blocks)"),
            y=alt.Y("hit rate:Q", axis=alt.Axis(format="%")),
            color=alt.Color("policy:N", scale=alt.Scale(range=colours(4)), title=None),
            tooltip=["blocks:Q", "policy:N", alt.Tooltip("hit rate:Q", format=".1%")],
        )
    )
    ceiling = alt.Data(values=[{"hit rate": answer.hit_rate, "what": "a pool without end"}])
    rule = alt.Chart(ceiling).mark_rule(strokeDash=[4, 4]).encode(y="hit rate:Q", tooltip="what:N")
    return (lines + rule).properties(width=560, height=320)


def _requests(answer: PrefixAnswer) -> Any:
    alt = load_altair()
    rows = [
        {"request": i, "tokens": tokens, "what": what}
        for i, (row, reused) in enumerate(
            list(zip(answer.prompts.rows, answer.reused, strict=True))[:MOST_BARS]
        )
        for what, tokens in (("reused", reused), ("computed", row.tokens - reused))
    ]
    title = f"Prompt tokens of {answer.prompts.source}, {answer.hit_rate:.1%} reused"
    return (
        alt.Chart(alt.Data(values=rows), title=title, description=title)
        .mark_bar()
        .encode(
            x=alt.X("request:O", axis=alt.Axis(labelOverlap=True)),
            y=alt.Y("tokens:Q", stack="zero"),
            color=alt.Color("what:N", scale=alt.Scale(range=colours(2)), title=None),
            tooltip=["request:O", "what:N", alt.Tooltip("tokens:Q", format=",d")],
        )
        .properties(width=560, height=320)
    )
