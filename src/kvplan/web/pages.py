"""Pages as text: a form, and the answer to what it holds, or the sentence that refuses it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from kvplan._version import __version__
from kvplan.cli.defaults import completed, note_of, taken_for
from kvplan.core.errors import KvplanError, UnknownName
from kvplan.engines.names import ENGINES
from kvplan.web.ask import ask
from kvplan.web.fields import Field, fields_of
from kvplan.web.forms import CACHE_FORMATS, command_of, query, question_of
from kvplan.web.jobs import status_of
from kvplan.web.verbs import TEXTS, VERBS
from kvplan.web.view import view_of

CONTEXTS = ("4k", "8k", "16k", "32k", "64k", "128k", "256k", "1m")


@cache
def templates() -> Any:
    """The package's own templates, every value escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    found = Environment(
        loader=PackageLoader("kvplan.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.globals |= {"version": __version__, "verbs": VERBS, "query": query}
    return found


def page(
    verb: str, given: Mapping[str, Any], *, part: str = "", offline: bool = False
) -> tuple[int, str]:
    """A page with its status; ``part`` "answer" is what changes when a control does."""
    status, given, shown = _shown(verb, given, offline)
    shown |= {
        "verb": VERBS[verb],
        "given": given,
        "address": query(_short(given)),
        "api": _api(verb, given),
    }
    if part == "answer":
        # A part is what stands beside the form, a sentence too: that is no failure of asking.
        return 200, templates().get_template("answer.html").render(shown)
    name = f"{verb}.html" if verb in ("fit", "explain") else "verb.html"
    return status, templates().get_template(name).render(shown | choices(verb))


def refused(error: Mapping[str, str], part: str = "") -> str:
    """A page that says why there is none, or that part of it."""
    name = "answer_refused.html" if part == "answer" else "refused.html"
    return str(templates().get_template(name).render(error=error, near=[], here=""))


def _api(verb: str, given: Mapping[str, Any]) -> str:
    """The query that asks the API the same; empty where the question holds an upload."""
    try:
        asked = question_of(verb, given)
    except KvplanError:
        return ""
    if set(VERBS[verb].pasted) & set(asked) or _short(asked) != asked:
        return ""
    return query(_short(asked))


def _short(given: Mapping[str, Any]) -> dict[str, Any]:
    """What an address can hold: everything but uploads."""
    return {k: v for k, v in given.items() if isinstance(v, str | list) and len(v) < 16384}


def _shown(
    verb: str, given: Mapping[str, Any], offline: bool
) -> tuple[int, Mapping[str, Any], dict[str, Any]]:
    """The status, the form's values, and those of the answer, its refusal, or of nothing asked."""
    if not any(value for value in given.values()):
        texts = {VERBS[verb].pasted[0]: TEXTS[verb]} if verb in TEXTS else VERBS[verb].example
        return 200, given, {"state": "empty", "tried": query(texts)}
    try:
        note = note_of(taken_for(verb, given))
        given = completed(verb, given)
        answer = ask(verb, question_of(verb, given), offline=offline)
        view = view_of(answer, given)
        view["warnings"] += [note] if note else []
        return 200, given, {"state": "answered", "command": command_of(verb, given)} | view
    except KvplanError as error:
        near = _near(error, given)
        return status_of(error), given, {"state": "refused", "error": error, "near": near}


def _near(error: KvplanError, given: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The names that may have been meant, each with the address that asks for it."""
    if not isinstance(error, UnknownName):
        return []
    key = "gpu" if "device" in error.message else "model"
    return [(name, query(_short(given), **{key: name})) for name in error.near]


def choices(verb: str) -> dict[str, Any]:
    """What the controls of a form offer."""
    from kvplan.readers import catalogue
    from kvplan.readers.devices import devices

    fields = fields_of(verb)
    shown = [f for name in VERBS[verb].main if (f := fields.get(name)) is not None]
    return {
        "fields": shown,
        "more": [f for f in fields.values() if f not in shown and _is_asked(f, verb)],
        "models": [entry.id for entry in catalogue.entries()],
        "gpus": [(d.name, d.title) for d in devices() if d.memory_bytes],
        "engines": list(ENGINES),
        "contexts": CONTEXTS,
        "cache_formats": CACHE_FORMATS,
    }


def _is_asked(field: Field, verb: str) -> bool:
    return field.name not in VERBS[verb].pasted and field.name != "set"
