"""``--from``: the question that an engine's own command line, or a file with it, asks.

"vllm serve Qwen/Qwen3-32B -tp 2"  ──►  engine, version, model, flags, cards, what to know of it
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvplan.core.errors import BadFile, BadValue
from kvplan.engines.arguments import Arguments, of_environment, read_arguments
from kvplan.engines.base import Engine
from kvplan.engines.known_flags import KnownFlags, known_flags
from kvplan.engines.registry import engine_of
from kvplan.planning.config_file import FromFile, read_config_file
from kvplan.readers import reach
from kvplan.readers.command_line import Invocation, read_command_line
from kvplan.readers.json_text import read_bounded
from kvplan.readers.manifests import read_manifest
from kvplan.readers.shell import LONGEST
from kvplan.readers.yaml_text import MAX_BYTES

MANIFESTS = (".yaml", ".yml", ".json")
SAME_COMMANDS = {"llama.cpp": ("ik_llama.cpp",)}  # forks with the same programs
MOST_CARDS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """What a command line says, in ``fit``'s words; ``flags`` are the engine's, as texts.

    ``cards`` are those of its layout. ``overrides`` are keys of the model's config.
    """

    engine: str
    version: str | None
    model: str | None
    flags: Mapping[str, Any]
    cards: int
    overrides: Mapping[str, Any]
    warnings: tuple[str, ...]


def read_started(text: str, engine: str | None = None) -> Started:
    """What a command line or a file says.

    Args:
        text: the line, or the path of a script, a compose file or a Kubernetes manifest, with
            ``#NAME`` for one container of several.
        engine: the engine that was asked for beside it.

    Raises:
        BadValue: no engine is started, several are, another than was asked for, or a flag is not
            known.
        BadFile: a file that is not what it says.
        SourceUnreachable: it cannot be read.
    """
    invocation = open_invocation(text)
    spoken = engine_of(_agreed(invocation.engine, engine))
    known = known_flags(spoken.name)
    found = read_arguments(invocation.words, spoken.flags, known)
    of_variables, unread = of_environment(invocation.environment, known)
    named = {flag: value for flag, value in of_variables.items() if flag not in known.model}
    file = _config_file(found, spoken, known)
    line = {**_first_names(spoken, named), **found.flags}
    flags = {**line, **file.flags} if known.config_wins else {**file.flags, **line}
    models = [value for flag, value in of_variables.items() if flag in known.model]
    return Started(
        engine=spoken.name,
        version=invocation.version,
        model=found.model or file.model or next(iter(models), None),
        flags=flags,
        cards=_cards(flags, known),
        overrides=_overrides(found, known),
        warnings=(*_warnings(spoken.name, found, unread, known), *file.warnings),
    )


def open_invocation(text: str) -> Invocation:
    """The start that a text or a file holds."""
    path, _, name = text.partition("#")
    if _is_file(path):
        file = Path(path.strip()).expanduser()
        if file.suffix.lower() in MANIFESTS:
            return read_manifest(read_bounded(file, MAX_BYTES), str(file), name)
        try:
            script = read_bounded(file, LONGEST).decode("utf-8")
        except UnicodeDecodeError:
            raise BadFile(f"{file} is no text with a command line.") from None
        return read_command_line(script)
    return read_command_line(text)


def _is_file(path: str) -> bool:
    """Whether it is a file, or is written as the name of a manifest."""
    text = path.strip()
    if not text or len(text) > 4096 or "\n" in text or "\0" in text or not reach.is_open():
        return False
    if text.lower().endswith(MANIFESTS) and not any(c.isspace() for c in text):
        return True
    try:
        return Path(text).expanduser().is_file()
    except (OSError, RuntimeError):
        return False


def _agreed(found: str, asked: str | None) -> str:
    """The line's engine, unless a fork with the same programs was asked for."""
    if asked is None or asked.lower() == found:
        return found
    if asked.lower() in SAME_COMMANDS.get(found, ()):
        return asked
    raise BadValue(
        f"--from starts {found}, and --engine says {asked[:40]}.", "Leave --engine away."
    )


def _first_names(engine: Engine, flags: Mapping[str, Any]) -> dict[str, Any]:
    named = ((engine.flags.find(name), value) for name, value in flags.items())
    return {flag.names[0]: value for flag, value in named if flag is not None}


def _cards(flags: Mapping[str, Any], known: KnownFlags) -> int:
    """The cards of a layout; 1 where the flags say nothing of it."""
    inside = {flag for switch, flag in known.cards_inside.items() if flags.get(switch) == "true"}
    cards = 1
    for name in known.cards:
        text = str(flags.get(name, "1")).strip()
        if name not in inside and text.isdecimal() and len(text) < 6:
            cards *= max(1, int(text))
    if known.cards_listed in flags:
        cards = str(flags[known.cards_listed]).replace("/", ",").count(",") + 1
    return min(cards, MOST_CARDS)


def _config_file(found: Arguments, engine: Engine, known: KnownFlags) -> FromFile:
    text = next((found.values[name] for name in known.config if name in found.values), None)
    return FromFile() if text is None else read_config_file(text, engine.flags, known)


def _overrides(found: Arguments, known: KnownFlags) -> dict[str, Any]:
    """The keys of the config that a JSON flag replaces.

    Raises:
        BadValue: no JSON object.
    """
    text = found.values.get(known.overrides)
    if text is None:
        return {}
    try:
        keys = json.loads(text)
    except (ValueError, RecursionError):
        keys = None
    if not isinstance(keys, dict):
        raise BadValue(f"{known.overrides} {text[:60]!r} is not a JSON object of config keys.")
    return keys


def _warnings(engine: str, found: Arguments, unread: list[str], known: KnownFlags) -> list[str]:
    said = []
    if found.left_out:
        said.append(f"Left out, as it touches neither memory nor speed: {_list(found.left_out)}.")
    read = (known.overrides, *known.config)
    others = [name for name in found.unmodelled if name not in read]
    if others:
        said.append(f"{engine} has {_list(others)}, and what it does to memory is not modelled.")
    if unread:
        said.append(f"Not modelled of the environment: {_list(sorted(unread))}.")
    return said


def _list(names: list[str]) -> str:
    more = f" and {len(names) - 20} more" if len(names) > 20 else ""
    return ", ".join(names[:20]) + more
