"""An engine's own flags on the command line of a verb that plans, told from the verb's.

The parser of the command line knows the verb's flags alone. What it does not know is an engine's:
it is taken out here, with its value where the engine's table says that it takes one.
"""

from __future__ import annotations

from collections.abc import Collection

from kvplan.core.errors import BadValue
from kvplan.engines.base import Engine
from kvplan.engines.names import ENGINES
from kvplan.engines.registry import engine_of

CARRIER = "--engine-flag"  # a hidden option of the verb, repeated


def carry(arguments: list[str], own: Collection[str], default_engine: str) -> list[str]:
    """The arguments with every engine flag as ``--engine-flag=--name=value``.

    Raises:
        BadValue: a flag that neither the verb nor the engine has.
    """
    named = _value(arguments, "--engine") or _started_engine(arguments) or default_engine
    engine = engine_of(named)
    kept: list[str] = []
    carried: list[str] = []
    place = 0
    while place < len(arguments):
        word = arguments[place]
        name, equals, _ = word.partition("=")
        place += 1
        if word == "--":
            kept += arguments[place - 1 :]
            break
        if not _is_flag(word) or name in own:
            kept.append(word)
            continue
        takes_value = _takes_value(engine, name, own)
        if equals or not takes_value:
            carried.append(word if equals else f"{name}=true")
            continue
        if place == len(arguments):
            raise BadValue(f"{name} needs a value.")
        carried.append(f"{name}={arguments[place]}")
        place += 1
    return kept[:1] + [f"{CARRIER}={flag}" for flag in carried] + kept[1:]


def _is_flag(word: str) -> bool:
    return len(word) > 1 and word.startswith("-") and not word[1:2].isdigit() and word != "-"


def _value(arguments: list[str], option: str) -> str | None:
    for place, word in enumerate(arguments):
        if word == option and place + 1 < len(arguments):
            return arguments[place + 1]
        if word.startswith(f"{option}="):
            return word.partition("=")[2]
    return None


def _started_engine(arguments: list[str]) -> str | None:
    """The engine that ``--from`` starts."""
    text = _value(arguments, "--from")
    if text is None:
        return None
    from kvplan.planning.started import open_invocation

    return open_invocation(text).engine


def _takes_value(engine: Engine, name: str, own: Collection[str]) -> bool:
    flag = engine.flags.find(name)
    if flag is None:
        raise _unknown(engine, name, own)
    return flag.read is not None


def _unknown(engine: Engine, name: str, own: Collection[str]) -> BadValue:
    """The error for a flag of another engine, or of none."""
    others = [other for other in ENGINES if engine_of(other).flags.find(name)]
    error = engine.flags.unknown(name, own)
    if not others:
        return error
    return BadValue(error.message, f"It is a flag of --engine {' and '.join(others)}.")


def parse_carried(given: list[str] | None) -> dict[str, str]:
    """The engine's flags by name, as text."""
    found = {}
    for flag in given or []:
        name, _, value = flag.partition("=")
        found[name] = value
    return found
