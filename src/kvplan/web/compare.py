"""Up to four deployments side by side: a form of columns, and each one's answer below its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from kvplan.cli.defaults import completed
from kvplan.core.errors import KvplanError
from kvplan.core.units import format_bytes, format_gib, format_seconds
from kvplan.planning.fit import FitAnswer
from kvplan.web.ask import ask
from kvplan.web.forms import query, question_of
from kvplan.web.pages import choices, templates

NAMES = "ABCD"
COLUMNS = len(NAMES)
KEYS = (
    ("model", "Model"), ("gpu", "Card"), ("gpus", "Cards"), ("engine", "Engine"),
    ("context", "Context"), ("concurrency", "Users"), ("kv", "Cache format"),
    ("price", "Price of a card an hour"), ("flags", "Flags of the engine"),
)  # fmt: skip


class Column(NamedTuple):
    """One deployment: its form, and its answer or the sentence that refuses it."""

    name: str
    given: dict[str, str]
    answer: FitAnswer | None
    error: str
    address: str

    @property
    def title(self) -> str:
        """The model and its cards."""
        return f"{self.given['model']} on {self.cards}"

    @property
    def cards(self) -> str:
        """How many of which card."""
        return f"{self.given.get('gpus') or 1} × {self.given.get('gpu') or '–'}"


class Line(NamedTuple):
    """A figure of every column; ``best`` are the places of the best ones."""

    label: str
    cells: tuple[str, ...]
    best: tuple[int, ...]


def page(given: Mapping[str, Any], part: str = "", *, offline: bool = False) -> tuple[int, str]:
    """The page, or its answer alone."""
    columns = columns_of(given)
    found = asked(given, offline)
    shown = {
        "here": "compare",
        "columns": [*columns, *({} for _ in range(COLUMNS - len(columns)))],
        "asked": found,
        "address": query(given),
        "lines": lines([one.answer for one in found]),
        "keys": KEYS,
    }
    name = "answer_compare.html" if part == "answer" else "compare.html"
    return 200, templates().get_template(name).render(shown | choices("fit"))


def columns_of(given: Mapping[str, Any]) -> list[dict[str, str]]:
    """The forms of the columns: the first value of each key is the first column's."""
    found: list[dict[str, str]] = [{} for _ in range(COLUMNS)]
    for key, _ in KEYS:
        values = given.get(key, "")
        for place, value in enumerate(values if isinstance(values, list) else [values]):
            if place < COLUMNS and isinstance(value, str) and value:
                found[place][key] = value
    while found and not found[-1]:
        found.pop()
    return found


def asked(given: Mapping[str, Any], offline: bool) -> list[Column]:
    """The answers of the columns that name a model."""
    return [
        _asked(NAMES[place], one, offline)
        for place, one in enumerate(columns_of(given))
        if one.get("model")
    ]


def _asked(name: str, given: dict[str, str], offline: bool) -> Column:
    try:
        given = completed("fit", given)
        answer = ask("fit", question_of("fit", given), offline=offline)
        assert isinstance(answer, FitAnswer)
        answer.to_dict()
        return Column(name, given, answer, "", query(given))
    except KvplanError as error:
        return Column(name, given, None, str(error), query(given))


def lines(answers: list[FitAnswer | None]) -> list[Line]:
    """The figures that are compared."""
    rows: list[tuple[str, Callable[[FitAnswer], float | None], Callable[[float], str], int]] = [
        ("conversations at once", lambda a: a.sequences, "{:,.0f}".format, 1),
        ("one conversation on a card", _own, lambda b: format_bytes(round(b)), 0),
        ("longest context", lambda a: a.max_context, "{:,.0f} tokens".format, 1),
        ("tokens/s of each, estimated", _estimated, "{:,.1f}".format, 1),
        ("tokens/s of each, at most", _bound, "{:,.1f}".format, 1),
        ("a decode step, at least", _step, format_seconds, 0),
        ("an hour (list price or yours)", lambda a: _cost(a, "per_hour"), "{:,.2f}".format, -1),
        ("a conversation-hour", lambda a: _cost(a, "per_sequence_hour"), "{:,.4f}".format, -1),
        ("a million output tokens", _per_million, "{:,.2f}".format, -1),
        ("KV pool of a card", lambda a: a.plan.ledger.pool_bytes, _gib, 0),
        ("weights on a card", lambda a: a.plan.ledger.terms[0].num_bytes, _gib, 0),
    ]  # fmt: skip
    fits = tuple("–" if a is None else "yes" if a.fits else "no" for a in answers)
    found = [Line("fits", fits, ())]
    for label, figure, words, better in rows:
        values = [None if answer is None else figure(answer) for answer in answers]
        if any(value is not None for value in values):
            cells = tuple("–" if value is None else words(value) for value in values)
            found.append(Line(label, cells, _best(values, better)))
    return found


def _best(values: list[float | None], better: int) -> tuple[int, ...]:
    known = [value for value in values if value]
    if not better or len(known) < 2 or len(set(known)) < 2:
        return ()
    wanted = max(known) if better > 0 else min(known)
    return tuple(place for place, value in enumerate(values) if value == wanted)


def _own(answer: FitAnswer) -> float:
    return answer.plan.sequence_bytes(answer.question.asked.context)


def _speed(answer: FitAnswer) -> dict[str, Any]:
    return answer.to_dict()["speed"] or {}


def _estimated(answer: FitAnswer) -> float | None:
    estimate = _speed(answer).get("estimate") or {}
    return estimate.get("tokens_per_s_per_sequence")


def _bound(answer: FitAnswer) -> float | None:
    return _speed(answer).get("tokens_per_s_per_sequence_floor")


def _step(answer: FitAnswer) -> float | None:
    return _speed(answer).get("decode_step_floor_s")


def _gib(size: float) -> str:
    return format_gib(round(size))


def _per_million(answer: FitAnswer) -> float | None:
    return _cost(answer, "per_million_output_tokens")


def _cost(answer: FitAnswer, key: str) -> float | None:
    return (answer.to_dict()["cost"] or {}).get(key)
