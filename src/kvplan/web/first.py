"""What an answer shows first: a sentence, and the figures that were asked for, as tiles."""

from __future__ import annotations

from typing import Any, NamedTuple

from kvplan.core.units import format_bytes, format_count, format_seconds
from kvplan.planning.advise import AdviseAnswer
from kvplan.planning.answer import Answer
from kvplan.planning.size import SizeAnswer
from kvplan.web.forms import query


class Tile(NamedTuple):
    """One of the first figures: a label, the figure, a smaller line under it."""

    label: str
    figure: str
    unit: str
    note: str


def first_of(answer: Answer, title: str) -> dict[str, Any]:
    """The template's ``subject``, ``headline`` and ``tiles``; ``title`` is the first table's."""
    if isinstance(answer, SizeAnswer):
        return {"subject": title, "headline": _kept(answer), "tiles": _size(answer)}
    if isinstance(answer, AdviseAnswer):
        subject, _, headline = title.rpartition(": ")
        named = {"subject": subject, "headline": headline}
        return named | {"tiles": _advise(answer), "plan": _plan(answer)}
    if answer.verb == "simulate" and hasattr(answer, "figures"):
        found = answer.figures()
        subject, _, headline = title.rpartition(": ")
        if found["rejected"] and not found["finished"]:
            headline = f"No request is served: {found['rejected']:,} are too long for the plan."
            return {"subject": subject, "headline": headline, "tiles": [], "good": False}
        return {"subject": subject, "headline": headline, "tiles": _simulate(found)}
    return {"subject": "", "headline": title, "tiles": []}


def _usual(answer: SizeAnswer) -> int:
    """The longest of the asked lengths that the model declares."""
    most = answer.model.max_context_tokens
    within = [tokens for tokens in answer.contexts if not most or tokens <= most]
    return max(within or answer.contexts)


def _kept(answer: SizeAnswer) -> str:
    tokens = _usual(answer)
    many = "One conversation" if answer.sequences == 1 else f"{answer.sequences:,} conversations"
    verb = "keeps" if answer.sequences == 1 else "keep"
    return f"{many} of {tokens:,} tokens {verb} {format_bytes(answer.bytes(tokens))}."


def _size(answer: SizeAnswer) -> list[Tile]:
    token, whole = answer.bytes_per_token, answer.multi_head_bytes_per_token
    fixed = format_bytes(answer.fixed_bytes) if answer.fixed_bytes else "none"
    saved = f"{whole / token:,.3g} ×" if token and whole else "–"
    weights = answer.model.weights
    size, count = ("–", "not known") if weights is None else (
        format_bytes(weights.num_bytes), f"{format_count(weights.parameters)} parameters",
    )  # fmt: skip
    return [
        Tile("A token", "in steps" if token is None else f"{token:,}", "" if token is None else "B",
             "windows, states or compression: see the layers" if token is None else "all layers"),
        Tile("Whatever the length", fixed, "", "of each conversation"),
        Tile("A head for every query", saved, "", "what one K and V a query head would take"),
        Tile("Weights", size, "", count),
    ]  # fmt: skip


def _advise(answer: AdviseAnswer) -> list[Tile]:
    option = answer.nearest
    if option is None or option.outcome is None:
        return []
    found, money = option.to_dict(), answer.space.pricing.currency
    ttft, tpot, cost = found["ttft_s"], found["tpot_s"], found["cost_per_hour"]
    user, wide = found["cost_per_user_hour"], found["error"]
    spread = f", ÷ or × {1 + wide:.2f}" if wide else ""
    warm = found["warm_ttft_s"]
    return [
        Tile("Cost", _money(cost), f"{money} an hour" if cost else "",
             f"{user:,.4g} an hour for each user" if user else "no price is known"),
        Tile("Holds", f"{found['sequences']:,}", "conversations",
             f"{found['needed_sequences']:,} are needed" if found["needed_sequences"] else ""),
        Tile("First token", _seconds(ttft), "", f"p95{spread}"
             + (f"; {format_seconds(warm)} with its history cached" if warm else "")),
        Tile("Each token after", _seconds(tpot), "", f"p95{spread}"),
    ]  # fmt: skip


def _plan(answer: AdviseAnswer) -> str:
    """The query that plans the choice, from the command that starts it; empty without one."""
    found = answer.nearest.to_dict() if answer.nearest and answer.nearest.outcome else {}
    if not found.get("command"):
        return ""
    asked = {"from": found["command"], "gpu": found["gpu"], "gpus": found["gpus"]}
    return query(asked | {"context": answer.goal.context or "", "concurrency": answer.goal.users})


def _simulate(found: dict[str, Any]) -> list[Tile]:
    ttft, tpot, usage = found["ttft_s"], found["tpot_s"], found["kv_usage"]
    again = found["preempted_requests"]
    preempted = f"; {again:,} requests preempted" if again else "; nobody preempted"
    return [
        Tile("First token", _seconds(ttft["p95"]), "", f"p95; half within {_seconds(ttft['p50'])}"),
        Tile("Each token after", _seconds(tpot["p95"]), "",
             f"p95; half within {_seconds(tpot['p50'])}"),
        Tile("Answers", f"{found['output_tokens_per_s']:,.0f}", "tokens/s",
             f"together; {found['requests_per_s']:,.3g} requests a second"),
        Tile("Cache in use", f"{usage['peak']:.0%}", "at most",
             f"{usage['mean']:.0%} on average{preempted}"),
    ]  # fmt: skip


def _seconds(value: float | None) -> str:
    return "–" if value is None else format_seconds(value)


def _money(value: float | None) -> str:
    return "–" if value is None else f"{value:,.2f}"
