"""What the templates show of an answer: words and figures, worked out nowhere else.

A verb whose page has a layout of its own has a function here; the others are shown by the tables
that the command prints.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

from kvplan.charts import parts_of
from kvplan.core.units import format_bytes, format_seconds
from kvplan.planning.advise import AdviseAnswer
from kvplan.planning.answer import Answer
from kvplan.planning.explain import ExplainAnswer
from kvplan.planning.fit import FitAnswer
from kvplan.web.first import Tile, first_of
from kvplan.web.forms import query, with_change
from kvplan.web.marked import marked

# A plot's heading, by its name.
ENDED = {
    "failed": "It failed.",
    "started": "It started.",
    "": "It has no error, and no line that says that it is ready.",
}
HEADINGS = {
    "card": "Where one card's memory goes",
    "concurrency": "How many, by their length",
    "speed": "How fast, by how many",
    "growth": "What one conversation keeps",
    "kinds": "By kind of layer",
    "chart": "",
}


class Step(NamedTuple):
    """A lever as a button: its name, the flag, what it buys, where it leads; ``same`` is one that
    makes room for nobody.
    """

    name: str
    change: str
    gain: str
    note: str
    href: str
    same: bool


def view_of(answer: Answer, given: Mapping[str, Any]) -> dict[str, Any]:
    """The template's values."""
    form: Any = import_module(f"kvplan.cli.{answer.verb}_tables")
    shown: dict[str, Any] = {
        "answer": answer,
        "tables": form.tables(answer),
        "explanation": form.explanation(answer),
        "plots": [(name, HEADINGS.get(name, name)) for name in parts_of(answer.verb)],
        "warnings": list(answer.warnings),
        "good": _good(answer),
    }
    shown |= first_of(answer, next((one.title for one in shown["tables"]), ""))
    if isinstance(answer, FitAnswer):
        shown |= _fit(answer, given)
    if isinstance(answer, ExplainAnswer):
        shown |= _explain(answer, given)
    return shown


def _good(answer: Answer) -> bool | None:
    """Whether the answer is yes or no; None where it is neither."""
    if isinstance(answer, AdviseAnswer):
        return answer.best is not None
    return answer.fits if isinstance(answer, FitAnswer) else None


def _explain(answer: ExplainAnswer, given: Mapping[str, Any]) -> dict[str, Any]:
    start = answer.start
    model, gpu = start.last("model"), start.last("gpu")
    named = (
        f"{start.engine} {start.version or ''}".strip(),
        model and model.value,
        gpu and gpu.value,
    )
    worst = next((f.message for f in answer.findings if f.severity == "error"), "")
    return {
        "subject": " · ".join(str(word) for word in named if word),
        "verdict": worst or ENDED[answer.ended],
        "findings": [f for f in answer.findings if f.message != worst],
        "suggestions": answer.suggestions,
        "lines": marked(given.get("second") or given.get("log") or "", start),
    }


def _fit(answer: FitAnswer, given: Mapping[str, Any]) -> dict[str, Any]:
    q, plan, found = answer.question, answer.plan, answer.to_dict()
    cards = f"{q.node.gpus} × {q.node.device.title}" if q.node.gpus > 1 else q.node.device.title
    return {
        "verdict": _verdict(answer),
        "reason": answer.reason or "",
        "subject": f"{plan.model.name} on {cards}",
        "engine": " ".join(filter(None, (plan.engine, plan.version))),
        "tiles": [_conversations(answer), _speed(found), _cost(found), _longest(answer)],
        "steps": _steps(found["levers"], given),
        "settings": [(flag, row["value"], row["source"]) for flag, row in found["launch"].items()],
    }


def _verdict(answer: FitAnswer) -> str:
    if not answer.plan.starts:
        return "No: it does not start."
    if not answer.fits:
        return f"No: {answer.sequences:,} of {answer.wanted:,} conversations fit."
    context = answer.question.asked.context
    many = "conversation" if answer.sequences == 1 else "conversations"
    return f"It fits: {answer.sequences:,} {many} of {context:,} tokens at once."


def _conversations(answer: FitAnswer) -> Tile:
    context = answer.question.asked.context
    limit = answer.plan.capacity(context).limited_by.replace("_", " ")
    own = format_bytes(answer.plan.sequence_bytes(context))
    note = (
        f"{own} each on a card; the {limit} stops more"
        if answer.plan.starts
        else "it does not start"
    )
    return Tile("Conversations at once", f"{answer.sequences:,}", f"of {context:,} tokens", note)


def _speed(found: dict[str, Any]) -> Tile:
    speed = found["speed"]
    if not speed:
        said = "no bandwidth is known" if found["capacity"]["sequences"] else "nothing runs"
        return Tile("Speed of each", "–", "", said)
    floor, batch = speed["tokens_per_s_per_sequence_floor"], speed["batch"]
    estimate = speed["estimate"]
    if not estimate:
        step = format_seconds(speed["decode_step_floor_s"])
        note = f"at most, with {batch:,} at once: a step reads weights and cache in {step}"
        return Tile("Speed of each", f"≤ {floor:,.0f}", "tokens/s", note)
    rate, error = estimate["tokens_per_s_per_sequence"], estimate["error"]
    note = f"estimated with {batch:,} at once" + (f", ÷ or × {1 + error:.2f}" if error else "")
    if floor:
        note += f"; memory allows {floor:,.0f}"
    return Tile("Speed of each", f"{rate:,.0f}", "tokens/s", note)


def _cost(found: dict[str, Any]) -> Tile:
    cost = found["cost"]
    if not cost:
        return Tile("Cost", "–", "", "no price is known: give one of a card for an hour")
    money = cost["currency"]
    parts = []
    if cost["per_sequence_hour"] is not None:
        parts.append(f"{cost['per_sequence_hour']:,.2f} a conversation-hour")
    if cost["per_million_output_tokens"] is not None:
        parts.append(f"{cost['per_million_output_tokens']:,.2f} a million output tokens")
    return Tile("Cost", f"{cost['per_hour']:,.2f}", f"{money} an hour", "; ".join(parts))


def _longest(answer: FitAnswer) -> Tile:
    wanted = (
        "one conversation" if answer.wanted == 1 else f"each of {answer.wanted:,} conversations"
    )
    return Tile("Longest context", f"{answer.max_context:,}", "tokens", f"of {wanted}")


def _steps(levers: list[dict[str, Any]], given: Mapping[str, Any]) -> list[Step]:
    """The levers, the most gainful first."""
    found = []
    for lever in sorted(levers, key=lambda lever: -int(lever["sequences"])):
        changed = with_change(given, lever["change"])
        factor = f" (× {lever['factor']:.2f})" if lever["factor"] else ""
        same = lever["factor"] == 1
        gain = "no more" if same else f"{lever['sequences']:,}{factor}"
        href = f"?{query(changed)}" if changed is not None else ""
        found.append(Step(lever["name"], lever["change"], gain, lever["note"], href, same))
    return found
