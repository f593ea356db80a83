"""The words of an engine's own command line to its flags, as its parser tells them apart.

    Qwen/Qwen3-32B -tp 2 --port 8000 --speculative-config.method mtp

is a model, ``--tensor-parallel-size 2``, a flag that is left out, and a part of a JSON value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kvplan.core.errors import BadValue
from kvplan.engines.flags import Flag, FlagTable
from kvplan.engines.known_flags import KnownFlags, Takes

MOST_WORDS = 4096
SWITCH_WORDS = ("true", "false")
_NUMBER = re.compile(r"-?\.?\d")
_SHORT_VALUE = re.compile(r"(-O)(\d)")  # vLLM's -O3


@dataclass(slots=True)
class Arguments:
    """What a command line says: the model, the flags that are modelled, and the others.

    ``values`` are the texts of flags that are known and not modelled; those in ``left_out`` touch
    neither memory nor speed, those in ``unmodelled`` may.
    """

    models: list[str] = field(default_factory=list)
    flags: dict[str, Any] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    unmodelled: list[str] = field(default_factory=list)

    @property
    def model(self) -> str | None:
        """The model, where the line names one.

        Raises:
            BadValue: it names two.
        """
        named = list(dict.fromkeys(self.models))
        if len(named) > 1:
            raise BadValue(f"The command line names two models: {named[0]!r} and {named[1]!r}.")
        return named[0] if named else None


def read_arguments(words: Sequence[str], table: FlagTable, known: KnownFlags) -> Arguments:
    """The arguments of one start.

    Raises:
        BadValue: a flag that the engine does not have, or one without its value.
    """
    if len(words) > MOST_WORDS:
        raise BadValue(f"The command line has {len(words):,} words; {MOST_WORDS:,} are read.")
    reader = _Reader(list(words), table, known)
    while reader.left:
        reader.step()
    return reader.found


class _Reader:
    """Walks through the words."""

    def __init__(self, words: list[str], table: FlagTable, known: KnownFlags) -> None:
        self.words, self.table, self.known = words, table, known
        self.place = 0
        self.found = Arguments()

    @property
    def left(self) -> int:
        """Words that are not read yet."""
        return len(self.words) - self.place

    def step(self) -> None:
        """One flag with what it takes, or one word of no flag."""
        word = self.words[self.place]
        self.place += 1
        if not _is_flag(word):
            if word:
                self.found.models.append(word)
            return
        short = _SHORT_VALUE.fullmatch(word)
        name, equals, value = (short[1], "=", short[2]) if short else word.partition("=")
        self._flag(name, value if equals else None)

    def _flag(self, name: str, value: str | None) -> None:
        flag = self.table.find(name)
        if flag is not None:
            self.found.flags[flag.names[0]] = self._modelled(flag, name, value)
            return
        plain = name.replace("_", "-")
        if self._negative(plain):
            return
        if plain in self.known.model or name in self.known.model:
            self.found.models.append(self._value(name, value))
            return
        takes = self.known.takes.get(name) or self.known.takes.get(plain)
        if takes is not None:
            self._known(plain if plain in self.known.takes else name, takes, value)
        elif not self._part(name, value):
            raise self.table.unknown(name, [*self.known.takes, *self.known.model])

    def _modelled(self, flag: Flag, name: str, value: str | None) -> str:
        if flag.read is None:
            return self._switch(value)
        if value is None and flag.names[0] in self.known.bare and self._next_is_flag(flag):
            return self.known.bare[flag.names[0]]
        if self.known.takes.get(flag.names[0]) is Takes.LIST and value is None:
            return " ".join(self._list())
        return self._value(name, value)

    def _switch(self, value: str | None) -> str:
        """Alone, or with a true or false after it, as older parsers took it."""
        if value is None and self.left and self.words[self.place].lower() in SWITCH_WORDS:
            value = self.words[self.place]
            self.place += 1
        return "true" if value is None else value.lower()

    def _value(self, name: str, value: str | None) -> str:
        if value is not None:
            return value
        if not self.left or self.words[self.place].startswith("--"):
            raise BadValue(f"{name} has no value in the command line.")
        self.place += 1
        return self.words[self.place - 1]

    def _list(self) -> list[str]:
        first = self.place
        while self.left and not _is_flag(self.words[self.place]):
            self.place += 1
        return self.words[first : self.place]

    def _next_is_flag(self, flag: Flag) -> bool:
        """Whether what follows is no value of a flag that may stand alone."""
        if not self.left or flag.read is None:
            return True
        try:
            flag.read(self.words[self.place])
        except (BadValue, ValueError):
            return True
        return False

    def _known(self, name: str, takes: Takes, value: str | None) -> None:
        """A flag that is not modelled: its value is passed over, and kept for who needs it."""
        if takes is Takes.NOTHING:
            value = self._switch(value)
        elif takes is Takes.VALUE:
            value = self._value(name, value)
        elif value is None:
            value = " ".join(self._list() if takes is Takes.LIST else self._perhaps())
        self.found.values[name] = value
        others = self.found.left_out if name in self.known.harmless else self.found.unmodelled
        if name not in others:
            others.append(name)

    def _perhaps(self) -> list[str]:
        if not self.left or _is_flag(self.words[self.place]):
            return []
        self.place += 1
        return self.words[self.place - 1 : self.place]

    def _negative(self, name: str) -> bool:
        """``--no-`` before a switch that is modelled."""
        flag = self.table.find(name.replace("--no-", "--", 1))
        if not name.startswith("--no-") or flag is None or flag.read is not None:
            return False
        self.found.flags[flag.names[0]] = "false"
        return True

    def _part(self, name: str, value: str | None) -> bool:
        """``--flag.key.key value``: a part of a JSON value (vLLM's and others' parsers)."""
        base, dot, path = name.partition(".")
        flag = self.table.find(base)
        if not dot:
            return False
        if flag is None or flag.read is None:
            takes = self.known.takes.get(base)
            if takes is not None:
                self._known(base, Takes.VALUE, value)
            return takes is not None
        whole = _object(self.found.flags.get(flag.names[0]))
        section = whole
        *outer, last = path.split(".")
        for key in outer:
            inner = section.get(key)
            section[key] = inner if isinstance(inner, dict) else {}
            section = section[key]
        section[last] = _json(self._value(name, value))
        self.found.flags[flag.names[0]] = json.dumps(whole)
        return True


def _is_flag(word: str) -> bool:
    return len(word) > 1 and word.startswith("-") and not _NUMBER.match(word)


def _object(text: str | None) -> dict[str, Any]:
    found = _json(text or "{}")
    return found if isinstance(found, dict) else {}


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def of_environment(
    environment: Mapping[str, str], known: KnownFlags
) -> tuple[dict[str, str], list[str]]:
    """The flags that an environment stands for, and the engine's variables that are not read."""
    flags = {
        known.environment[name]: value
        for name, value in environment.items()
        if name in known.environment and value
    }
    prefix = known.environment_prefix
    others = [
        name
        for name in environment
        if prefix
        and name.startswith(prefix)
        and name not in known.environment
        and name not in known.environment_harmless
    ]
    return flags, others
