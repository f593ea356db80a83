"""Cache against context: one line a model, the asked lengths as points."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kvplan.charts.base import TOKENS, colours, load_altair, token_ticks
from kvplan.charts.growth import by_kind
from kvplan.core.units import GIB
from kvplan.planning.size import SizeAnswer, SizeAnswers

POINTS = 65  # lengths on a line, evenly from nothing to the longest
LONGEST = 131072  # where a model declares no maximum


def chart(answer: SizeAnswer | SizeAnswers) -> Any:
    """The growth of one model's cache, or of several."""
    return growth([answer] if isinstance(answer, SizeAnswer) else answer.answers)


def growth(answers: Sequence[SizeAnswer]) -> Any:
    """Cache against context: one line a model, the asked lengths as points."""
    alt = load_altair()
    line, points = [], []
    for answer in answers:
        longest = max([*answer.contexts, answer.model.max_context_tokens or LONGEST])
        lengths = {round(longest * place / (POINTS - 1)) for place in range(POINTS)}
        line += [_at(answer, tokens) for tokens in sorted(lengths)]
        points += [_at(answer, tokens) for tokens in answer.contexts]
    names = [answer.model.name for answer in answers]
    ticks = token_ticks(max(int(row["tokens"]) for row in line))
    count = answers[0].sequences
    what = "one conversation" if count == 1 else f"{count:,} conversations"
    shared = {
        "x": alt.X(
            "tokens:Q",
            title="context (tokens)",
            scale=alt.Scale(nice=False),
            axis=alt.Axis(labelExpr=TOKENS, values=ticks),
        ),
        "y": alt.Y("GiB:Q", title=f"cache of {what} (GiB)"),
        "color": alt.Color(
            "model:N",
            sort=names,
            scale=alt.Scale(domain=names, range=colours(len(names))),
            legend=alt.Legend(title=None, orient="top", columns=2, labelLimit=300),
        ),
        "tooltip": ["model:N", alt.Tooltip("tokens:Q", format=",d"), "GiB:Q", "bytes:Q"],
    }
    title = f"KV cache against context, {answers[0].fmt.name}"
    return alt.layer(
        alt.Chart(alt.Data(values=line)).mark_line().encode(**shared),
        alt.Chart(alt.Data(values=points)).mark_point(filled=True, size=50).encode(**shared),
        title=title,
        description=f"{title}: {', '.join(names)}",
    ).properties(width=560, height=340)


def _at(answer: SizeAnswer, tokens: int) -> dict[str, Any]:
    held = answer.bytes(tokens)
    return {"model": answer.model.name, "tokens": tokens, "bytes": held, "GiB": held / GIB}


def kinds(answer: SizeAnswer | SizeAnswers) -> Any:
    """One model's cache by kind of layer; of several the first's."""
    one = answer if isinstance(answer, SizeAnswer) else answer.answers[0]
    return by_kind(one.model, one.fmt)


PARTS: Mapping[str, Callable[[SizeAnswer | SizeAnswers], Any]] = {"growth": chart, "kinds": kinds}
