"""Flags in an engine's own spelling: what each is called, what it takes, how it is read."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from kvplan.core.errors import BadValue
from kvplan.core.formats import parse_format
from kvplan.core.units import parse_bytes, parse_tokens


class Flag(NamedTuple):
    """One flag: its names (the first is the one shown), how its text is read, what it does.

    ``read`` is None for a switch that takes no value.
    """

    names: tuple[str, ...]
    read: Callable[[str], Any] | None
    help: str = ""


class FlagTable:
    """The flags of one engine by every name they have."""

    def __init__(self, engine: str, flags: Iterable[Flag]) -> None:
        self.engine = engine
        self.flags = tuple(flags)
        self._by_name = {name: flag for flag in self.flags for name in flag.names}

    def find(self, name: str) -> Flag | None:
        """A flag by any of its names; ``_`` counts as ``-``, and a keyword's ``--c`` as ``-c``."""
        known, dashed = self._by_name, name.replace("_", "-")
        return known.get(name) or known.get(dashed) or known.get(dashed[1:])

    def parse(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Values by the flag's first name; what is no text is taken as a value already.

        Raises:
            BadValue: a flag that the engine does not have, or a value that cannot be read.
        """
        found: dict[str, Any] = {}
        for name, text in given.items():
            flag = self.find(name)
            if flag is None:
                raise self.unknown(name)
            found[flag.names[0]] = self._value(flag, name, text)
        return found

    def _value(self, flag: Flag, name: str, text: Any) -> Any:
        if flag.read is None:
            return switch(text, name)
        if text is True:
            raise BadValue(f"{name} needs a value.", flag.help)
        if not isinstance(text, str) and flag.read is not size:  # a size may be whole bytes
            text = str(text)
        try:
            return flag.read(text)
        except BadValue as error:
            raise BadValue(f"{name}: {error.message}", error.hint) from None
        except ValueError:
            raise BadValue(f"{name} {text[:60]!r} cannot be read.", flag.help) from None

    def unknown(self, name: str, others: Iterable[str] = ()) -> BadValue:
        """The error for a flag that is not here, with the nearest ones here or of ``others``."""
        known = [*self._by_name, *others]
        near = difflib.get_close_matches(name.replace("_", "-"), known, n=3, cutoff=0.6)
        hint = f"Did you mean {', '.join(near)}?" if near else "See kvplan fit --help."
        return BadValue(
            f"The engine {self.engine!r} has no flag {name[:60]!r} that is modelled.", hint
        )


def switch(text: Any, name: str) -> bool:
    """A switch: present, or true or false as a text."""
    if isinstance(text, bool):
        return text
    if str(text).lower() in ("true", "1", "yes", "on", ""):
        return True
    if str(text).lower() in ("false", "0", "no", "off"):
        return False
    raise BadValue(f"{name} {str(text)[:60]!r} is neither true nor false.")


def whole(least: int = 0, most: int = 1 << 40) -> Callable[[str], int]:
    """Reads a whole number within bounds; ``8k`` and ``1m`` count as engines read them."""

    def read(text: str) -> int:
        value = int(text) if text.strip().lstrip("-").isdecimal() else parse_tokens(text)
        if not least <= value <= most:
            raise BadValue(f"{text[:40]} is not from {least:,} to {most:,}.")
        return value

    return read


def fraction(text: str) -> float:
    """Reads a share above 0 and up to 1."""
    value = float(text)
    if not 0 < value <= 1:
        raise BadValue(f"{text[:40]} is not a share between 0 and 1.")
    return value


def word(*known: str) -> Callable[[str], str]:
    """Reads one of some words; any text without a list."""

    def read(text: str) -> str:
        if known and text not in known:
            raise BadValue(f"{text[:40]!r} is not one of {', '.join(known)}.")
        return text[:200]

    return read


size = parse_bytes
cache_format = parse_format
