"""A measurement: first tokens and later tokens of each run, and what was reused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kvplan.charts.base import colours, load_altair
from kvplan.measuring.answer import MeasureAnswer
from kvplan.measuring.summary import Measured, Run, gaps, ttft

MOST_POINTS = 2000  # of one plot; more are thinned evenly


def chart(answer: MeasureAnswer) -> Any:
    """First tokens, later tokens, and reuse, one under the other."""
    alt = load_altair()
    names = list(dict.fromkeys(label(run) for run in answer.runs))
    first, later = [], []
    for one in answer.experiment.measured:
        name = label_of(one)
        for record in one.records:
            if record.reply.failure is None:
                first.append({"run": name, "s": ttft(record)})
                later += [{"run": name, "ms": gap * 1e3} for gap in gaps(record) if gap > 0]
    return alt.vconcat(
        _points(alt, _thin(first), "s", "seconds to the first token", names),
        _points(alt, _thin(later), "ms", "milliseconds between later tokens", names),
        _reuse(alt, answer.runs, names),
    ).resolve_scale(color="independent")


def label(run: Run) -> str:
    """A run in few words."""
    return _label(run.prefix, run.prompt, run.concurrency, run.rate, run.reuse, run.pressure)


def label_of(one: Measured) -> str:
    """The run that a phase is of."""
    phase = one.phase
    return _label(
        phase.kind, phase.prompt_tokens, phase.concurrency, phase.rate, phase.reuse, phase.pressure
    )


def _label(
    kind: str, prompt: int | None, at_once: int | None, rate: float | None, reuse: bool, full: bool
) -> str:
    pace = f"× {at_once:,}" if rate is None else f"{rate:.3g}/s"
    length = "" if prompt is None else f" {prompt:,}"
    return f"{kind}{length} {pace}{'' if reuse else ', reuse off'}{', pressure' if full else ''}"


def _thin(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    step = -(-len(rows) // MOST_POINTS) or 1
    return rows[::step]


def _points(alt: Any, rows: list[dict[str, Any]], key: str, title: str, names: list[str]) -> Any:
    """A dot a value, and a mark at the median."""
    base = alt.Chart(alt.Data(values=rows)).encode(
        y=alt.Y("run:N", sort=names, title=None, scale=alt.Scale(domain=names))
    )
    # A pause for another's prompt is a thousand times a token: only powers show both.
    scale = alt.Scale(type="log") if key == "ms" else alt.Scale(zero=True)
    axis = alt.X(f"{key}:Q", title=title, scale=scale)
    dots = base.mark_circle(size=24, opacity=0.4, color=colours(1)[0]).encode(x=axis)
    middle = base.mark_tick(thickness=3, color=colours(2)[1]).encode(
        x=alt.X(f"median({key}):Q", title=title, scale=scale)
    )
    return (dots + middle).properties(width=520, height=22 * len(names))


def _reuse(alt: Any, runs: tuple[Run, ...], names: list[str]) -> Any:
    """Prompt tokens of each run: reused, sent before and yet computed, and the rest."""
    rows = [row for run in runs for row in _parts(run)]
    kinds = ["reused", "lost", "computed"]
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_bar()
        .encode(
            x=alt.X("tokens:Q", title="prompt tokens", stack="zero"),
            y=alt.Y("run:N", sort=names, title=None, scale=alt.Scale(domain=names)),
            color=alt.Color(
                "kind:N",
                sort=kinds,
                scale=alt.Scale(domain=kinds, range=[colours(3)[2], colours(2)[1], "#BBBBBB"]),
                legend=alt.Legend(title=None, orient="top"),
            ),
            order=alt.Order("place:Q"),
            tooltip=["run:N", "kind:N", alt.Tooltip("tokens:Q", format=",")],
        )
        .properties(width=520, height=22 * len(names))
    )


def _parts(run: Run) -> Iterator[dict[str, Any]]:
    reused, lost = run.cached_tokens or 0, run.lost_tokens or 0
    values = (reused, lost, max(0, run.prompt_tokens - reused - lost))
    for place, (kind, tokens) in enumerate(
        zip(("reused", "lost", "computed"), values, strict=True)
    ):
        yield {"run": label(run), "kind": kind, "tokens": tokens, "place": place}
