"""Every plot once, as an Altair chart: for a file, a notebook and a page alike.

Needs the ``plot`` extra; without it ``save`` says which to install.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

from kvplan.core.errors import BadValue
from kvplan.core.ledger import Ledger
from kvplan.core.units import GIB
from kvplan.planning.answer import Answer
from kvplan.planning.explain import ExplainAnswer
from kvplan.planning.fit import FitAnswer
from kvplan.planning.size import SizeAnswer, SizeAnswers

POINTS = 65  # lengths on a line, evenly from nothing to the longest
LONGEST = 131072  # where a model declares no maximum

# Okabe and Ito's colours, told apart with any colour vision.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")


def save(answer: Answer, path: Path) -> None:
    """The chart of an answer as .png, .svg or .html.

    Raises:
        BadValue: the ``plot`` extra is not installed.
    """
    chart = chart_of(answer)
    if path.suffix.lower() == ".png":
        chart.save(str(path), scale_factor=2)
    elif path.suffix.lower() == ".html":
        # Altair's JavaScript comes with vl-convert: the file opens without a network.
        chart.save(str(path), inline=True)
    else:
        chart.save(str(path))


def chart_of(answer: Answer) -> Any:
    """The Altair chart that shows an answer."""
    if isinstance(answer, SizeAnswer):
        return growth([answer])
    if isinstance(answer, SizeAnswers):
        return growth(answer.answers)
    if isinstance(answer, FitAnswer):
        return card(answer)
    if isinstance(answer, ExplainAnswer):
        return logged(answer)
    raise TypeError(type(answer).__name__)


def _altair() -> Any:
    try:
        import altair
        import vl_convert  # noqa: F401  (what altair saves pictures with)
    except ImportError:
        raise BadValue(
            "A plot needs the plot extra, which is not installed.",
            "Install it with: pip install 'kvplan[plot]'",
        ) from None
    return altair


def growth(answers: Sequence[SizeAnswer]) -> Any:
    """Cache against context: one line a model, the asked lengths as points."""
    alt = _altair()
    line, points = [], []
    for answer in answers:
        longest = max([*answer.contexts, answer.model.max_context_tokens or LONGEST])
        lengths = {round(longest * place / (POINTS - 1)) for place in range(POINTS)}
        line += [_at(answer, tokens) for tokens in sorted(lengths)]
        points += [_at(answer, tokens) for tokens in answer.contexts]
    names = [answer.model.name for answer in answers]
    count = answers[0].sequences
    what = "one conversation" if count == 1 else f"{count:,} conversations"
    shared = {
        "x": alt.X("tokens:Q", title="context (tokens)", axis=alt.Axis(format=",d")),
        "y": alt.Y("GiB:Q", title=f"cache of {what} (GiB)"),
        "color": alt.Color(
            "model:N",
            sort=names,
            scale=alt.Scale(domain=names, range=[COLOURS[i % 8] for i in range(len(names))]),
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


def card(answer: FitAnswer) -> Any:
    """One card as a bar of named terms."""
    title = f"{answer.plan.model.name} on {answer.plan.node.device.title}"
    return _bars({"planned": answer.plan.ledger}, title)


def logged(answer: ExplainAnswer) -> Any:
    """One card as it was logged, above the prediction where there is one.

    Raises:
        BadValue: no line of the log states a size.
    """
    bars = {"logged": answer.ledger}
    if answer.predicted is not None:
        bars["predicted"] = answer.predicted.plan.ledger
    if not answer.ledger.terms:
        raise BadValue("No line of the log states a size, so that there is nothing to plot.")
    model = answer.start.last("model")
    return _bars(bars, str(model.value) if model is not None else answer.start.engine)


def _bars(ledgers: Mapping[str, Ledger], title: str) -> Any:
    """A bar of named terms for each ledger, the same colour for the same term."""
    alt = _altair()
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
                scale=alt.Scale(domain=shown, range=[COLOURS[i % 8] for i in range(len(shown))]),
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
