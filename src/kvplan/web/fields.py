"""The keys of a verb's questions: its function's keywords, with the command's types and help.

    kvplan.fit(…, gpus=2)    kvplan fit --gpus 2    GET /api/fit?gpus=2    POST {"gpus": 2}

A text becomes what the keyword takes; what has no such key is refused, or is an engine's own flag
where the verb takes those.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import kvplan
from kvplan.core.errors import BadValue
from kvplan.engines.flags import switch
from kvplan.readers.json_text import parse_json
from kvplan.web.verbs import VERBS

MAX_TEXT = 1 << 16  # characters of a value that is no document
MAX_VALUES = 64
LABELS = {
    "kv_dtype": "Cache format", "gpu": "Card", "gpus": "Cards", "ttft": "First token within",
    "tpot": "Each token within", "set": "Config keys",
}  # fmt: skip
# Where the command takes a file's name, what is sent is the document itself.
HELP = {
    "model": "A catalogue name, a hub id (org/name), or a config.json as an object.",
    "from": "An engine's own command line, as 'vllm serve …' or 'docker run …'.",
    "log": "The text of a start-up log of any engine, or of a server's /metrics.",
    "trace": "The text of a trace, JSONL or CSV: its requests are sent in place of drawn ones.",
    "requests": "The text of the requests: a line of JSON each, with messages, a prompt or tokens.",
    "second": "The text of a later log: what changed, and why the pool moved.",
}


class Field(NamedTuple):
    """A key: what it takes (``text``, ``whole``, ``number``, ``switch``, ``pairs``), and its help.

    ``keyword`` is the function's own name of it; ``several`` says that a list is taken, ``digits``
    that a text may be a whole number.
    """

    name: str
    keyword: str
    kind: str
    help: str
    required: bool = False
    several: bool = False
    digits: bool = False

    @property
    def label(self) -> str:
        """What a form calls it."""
        return LABELS.get(self.name) or self.name.replace("_", " ").capitalize()


@cache
def fields_of(verb: str) -> Mapping[str, Field]:
    """The keys of a verb by name, in the function's order."""
    options, found = _options(verb), {}
    hidden = {"offline", "calibration", *VERBS[verb].never}
    for keyword, parameter in inspect.signature(getattr(kvplan, verb)).parameters.items():
        name = keyword.rstrip("_")
        called = "Callable" in str(parameter.annotation) or name.endswith("progress")
        if name in hidden or called or parameter.kind is parameter.VAR_KEYWORD:
            continue
        option = options.get(name) or options.get(f"{name}s")
        found[name] = Field(
            name=name,
            keyword=keyword,
            kind="pairs" if name == "set" else _kind(option, str(parameter.annotation)),
            help=_help(verb, name, option),
            required=parameter.default is parameter.empty,
            several="Sequence" in str(parameter.annotation),
            digits="int" in str(parameter.annotation),
        )
    return found


def _help(verb: str, name: str, option: Any) -> str:
    own = name in ("model", "from") or name in VERBS[verb].pasted
    return (HELP.get(name) if own else None) or getattr(option, "help", None) or ""


@cache
def takes_engine_flags(verb: str) -> bool:
    """Whether a key that is none of the verb's may be an engine's flag."""
    parameters = inspect.signature(getattr(kvplan, verb)).parameters.values()
    return any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)


@cache
def _own_keywords(verb: str) -> frozenset[str]:
    """All names of the function: one that is no field here is not the engine's either."""
    return frozenset(inspect.signature(getattr(kvplan, verb)).parameters)


def _options(verb: str) -> dict[str, Any]:
    """The command's options and arguments, by their longest name with underscores."""
    import typer

    from kvplan.cli import app

    command = typer.main.get_command(app).commands[verb]  # type: ignore[attr-defined]
    return {
        max(param.opts, key=len).lstrip("-").replace("-", "_"): param for param in command.params
    }


def _kind(option: Any, annotation: str) -> str:
    named = {"integer": "whole", "float": "number", "boolean": "switch"}
    if option is not None:
        return named.get(option.type.name, "text")
    words = {"int | None": "whole", "int": "whole", "float | None": "number", "bool": "switch"}
    return words.get(annotation, "text")


def keywords(verb: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The function's keywords of a question, each value read.

    Raises:
        BadValue: a key that is not known or is missing, or a value of another kind.
    """
    fields, found = fields_of(verb), {}
    for name, value in given.items():
        if value is None or value in ("", []):
            continue
        field = fields.get(name)
        if field is not None:
            found[field.keyword] = _read(field, value)
        elif takes_engine_flags(verb) and name not in _own_keywords(verb):
            found[name] = _engine_flag(name, value)
        else:
            raise BadValue(f"{verb} has no key {name[:60]!r}.", f"It has {', '.join(fields)}.")
    missing = [f.name for f in fields.values() if f.required and f.keyword not in found]
    if missing:
        raise BadValue(f"{verb} needs {' and '.join(missing)}.", f"It has {', '.join(fields)}.")
    return found


def _read(field: Field, value: Any) -> Any:
    if field.kind == "pairs":
        return _pairs(value)
    if isinstance(value, list):
        if not field.several or len(value) > MAX_VALUES:
            most = f"{MAX_VALUES} values at most" if field.several else "one value"
            raise BadValue(f"{field.name} takes {most}, and {len(value):,} are given.")
        return [_one(field, item) for item in value]
    return _one(field, value)


def _one(field: Field, value: Any) -> Any:
    if field.kind == "whole":
        return _whole(field.name, value)
    if field.kind == "number":
        return _number(field.name, value)
    if field.kind == "switch":
        return switch(value, field.name)
    if field.name == "model" and isinstance(value, Mapping):
        return value
    if isinstance(value, bytes) or not isinstance(value, str | int | float | bool):
        return value if hasattr(value, "read") or isinstance(value, bytes) else _not_text(field)
    if isinstance(value, bool):
        _not_text(field)
    if isinstance(value, str) and len(value) > MAX_TEXT:
        raise BadValue(f"{field.name} is longer than {MAX_TEXT:,} characters.")
    if field.name == "model" and isinstance(value, str) and value.lstrip().startswith("{"):
        return _object(value)
    return (
        value if isinstance(value, str) or (field.digits and isinstance(value, int)) else str(value)
    )


def _not_text(field: Field) -> Any:
    raise BadValue(f"{field.name} takes a text or a number.", field.help)


def _object(text: str) -> Any:
    """A config that stands where a name may."""
    found = parse_json(text, "The config")
    if not isinstance(found, dict):
        raise BadValue("The config is no JSON object.")
    return found


def _whole(name: str, value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().lstrip("+-").isdecimal():
        if len(value) > 20:
            raise BadValue(f"{name} {value[:20]}… is larger than any number that is asked here.")
        return int(value)
    raise BadValue(f"{name} {str(value)[:40]!r} is not a whole number.")


def _number(name: str, value: Any) -> float:
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise BadValue(f"{name} {str(value)[:40]!r} is not a number.")
    return number


def _pairs(value: Any) -> dict[str, Any]:
    """Config keys to replace: an object, or ``key=value`` texts."""
    from kvplan.cli.options import parse_overrides

    if isinstance(value, Mapping):
        return dict(value)
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, Sequence) or not all(isinstance(text, str) for text in texts):
        raise BadValue("set takes key=value, or an object of config keys.")
    return parse_overrides(list(texts))


def _engine_flag(name: str, value: Any) -> Any:
    if not name.replace("-", "_").replace("_", "a").isalnum() or len(name) > 100:
        raise BadValue(f"{name[:60]!r} is no flag of an engine.")
    if not isinstance(value, str | int | float | bool) or len(str(value)) > MAX_TEXT:
        raise BadValue(f"{name} takes a text, a number, true or false.")
    return value
