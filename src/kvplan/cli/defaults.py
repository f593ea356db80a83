"""What a ``kvplan.toml`` says for a question, where its flags do not.

    kvplan fit MODEL    ─►  kvplan fit --engine=sglang --gpu=h100-nvl MODEL

A value of the file stands as the flag that was not given, so that nothing behind the command line
knows of files; the answer says which values those were. It is left out where another flag says as
much: the engine beside ``--from``, the card beside ``--gpu-memory``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from kvplan.core.errors import BadFile, BadQuestion, BadValue
from kvplan.engines.names import flags_of
from kvplan.readers.settings import Value, in_use

# The keywords of a file that a verb takes. The card of advise is its answer.
TAKEN: Mapping[str, tuple[str, ...]] = {
    "fit": ("engine", "gpu", "currency", "exchange_rate"),
    "simulate": ("engine", "gpu"),
    "advise": ("engine", "currency", "exchange_rate"),
    "prefix": ("engine", "currency"),
}
# Verbs that take nothing but the cards by their names.
CARDS_ALONE = ("explain", "measure", "gpus", "ui")
# What says as much as a keyword, so that it is not taken.
INSTEAD = {"engine": ("from", "replay"), "gpu": ("gpu_memory", "replay")}
NAMED, NONE = "--config-file", "--no-config"


class Taken(NamedTuple):
    """What a command took of a file, as its context's object: a dictionary there is typer's own."""

    values: Mapping[str, Value]


def reads_settings(verb: str) -> bool:
    """Whether a verb asks anything of a file."""
    return verb in TAKEN or verb in CARDS_ALONE


def without_choice(arguments: list[str]) -> tuple[list[str], str | None, bool]:
    """The arguments without the flags that choose the file: which it is, and whether any.

    Raises:
        BadValue: no file behind its flag.
    """
    kept: list[str] = []
    file, reads = None, True
    words = iter(arguments)
    for word in words:
        name, equals, value = word.partition("=")
        if word == "--":
            return [*kept, word, *words], file, reads
        if word == NONE:
            reads = False
        elif name == NAMED:
            file = value if equals else next(words, "")
            if not file:
                raise BadValue(f"{NAMED} needs a file.", f"{NONE} reads none.")
        else:
            kept.append(word)
    return kept, file, reads


def defaults_for(verb: str, given: Collection[str]) -> dict[str, Value]:
    """The values of the settings in use that a question lacks, by keyword.

    Raises:
        BadFile: an engine or a card that is not known.
    """
    settings = in_use()
    if settings is None:
        return {}
    found = {
        name: settings.values[name]
        for name in TAKEN.get(verb, ())
        if name in settings.values
        and name not in given
        and not set(INSTEAD.get(name, ())) & set(given)
    }
    if "currency" in given:
        found.pop("exchange_rate", None)  # that of another currency, perhaps
    _check(found)
    return found


def _check(found: Mapping[str, Value]) -> None:
    """What is not known is said to be of the file."""
    for name, (value, source) in found.items():
        try:
            if name == "engine":
                from kvplan.engines.registry import engine_of

                engine_of(str(value))
            elif name == "gpu":
                from kvplan.readers.devices import find_device

                find_device(str(value))
        except BadQuestion as error:
            raise BadFile(f"{source}: {error.message}", error.hint) from None


def given_in(arguments: list[str]) -> set[str]:
    """The keywords of the flags of a command line, and of the axes of a sweep."""
    found = set()
    before = ""
    for word in arguments:
        if word == "--":
            break
        name, _, value = word.partition("=")
        if name.startswith("--"):
            found.add(name[2:].replace("-", "_"))
        axis = word if before == "--sweep" else value if name == "--sweep" else ""
        if axis:
            found.add(axis.partition("=")[0])
        before = word
    return found


def as_flags(found: Mapping[str, Value]) -> list[str]:
    """The values as flags."""
    return [f"{flag}={value}" for flag, (value, _) in flags_of(found).items()]


def note_of(found: Mapping[str, Value]) -> str:
    """A line that says what was taken: ``kvplan.toml: engine = sglang, gpu = l4``; or nothing."""
    pairs = [f"{name.replace('_', '-')} = {value}" for name, (value, _) in found.items()]
    files = {source.rpartition(": ")[0] for _, source in found.values()}
    return f"{' '.join(files)}: {', '.join(pairs)}" if pairs else ""


def with_defaults(body: dict[str, Any], found: Mapping[str, Value]) -> dict[str, Any]:
    """An answer's JSON, with what was taken of the file beside what it is made of."""
    if not found:
        return body
    return body | {"defaults": {name: value._asdict() for name, value in found.items()}}


def taken_for(verb: str, given: Mapping[str, Any]) -> dict[str, Value]:
    """The values that a question by its keys lacks; one that asks nothing lacks nothing."""
    keys = {name for name, value in given.items() if value not in ("", None, [])}
    return defaults_for(verb, keys) if keys else {}


def completed(verb: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """A question's keys with those values, as texts, which an address can hold."""
    taken = taken_for(verb, given)
    return {**given, **{name: str(value) for name, (value, _) in taken.items()}}
