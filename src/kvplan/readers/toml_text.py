"""TOML from a source that is not trusted: bounded, each value of the kind that is needed, no key
that nobody knows.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from kvplan.core.errors import BadFile, BadQuestion
from kvplan.readers.json_text import shown

T = TypeVar("T")

MAX_BYTES = 64 << 10
MAX_DOTS = 64  # in a line: the parser's time grows with the square of a key's parts
MAX_TEXT = 200
MOST = 1e9
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_KINDS = {bool: "true or false", str: "a text", dict: "a table", list: "a list"}


def read_toml(data: bytes, what: str) -> dict[str, Any]:
    """The table that a text holds; ``what`` names it in messages.

    Raises:
        BadFile: too large, not UTF-8, not TOML, nested too deeply, or with a number of thousands
            of digits.
    """
    import tomllib

    if len(data) > MAX_BYTES:
        raise BadFile(f"{what} is larger than {MAX_BYTES >> 10} KiB; such a file is smaller.")
    for number, line in enumerate(data.splitlines(), 1):
        if line.count(b".") > MAX_DOTS:
            raise BadFile(f"{what} has more than {MAX_DOTS} dots in line {number}.")
    try:
        return tomllib.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise BadFile(f"{what} is not UTF-8 text (byte {error.start:,}).") from None
    except tomllib.TOMLDecodeError as error:
        raise BadFile(f"{what} is not TOML: {str(error)[:160]}.") from None
    except RecursionError:
        raise BadFile(f"{what} is nested too deeply.") from None
    except ValueError:
        raise BadFile(f"{what} holds a number with too many digits.") from None


def dotted(*parts: str) -> str:
    """A key as TOML writes it: ``cards.h100-nvl.price``, ``cards."NVIDIA A10".price``."""
    return ".".join(part if _BARE.fullmatch(part) else f'"{part}"' for part in parts)


class Keys:
    """A table of a file: its values by the kind that is needed, and where each is from."""

    def __init__(self, table: Mapping[str, Any], file: str, *parts: str) -> None:
        self.table, self.file, self.parts = table, file, parts

    def __contains__(self, key: str) -> bool:
        return key in self.table

    def source(self, key: str = "") -> str:
        """Where a value is from: ``kvplan.toml: cards.h100-nvl.price``."""
        return f"{self.file}: {dotted(*self.parts, *filter(None, [key]))}"

    def only(self, known: Iterable[str]) -> None:
        """Go on where every key is known.

        Raises:
            BadFile: one is not; the nearest is named.
        """
        names = list(known)
        for key in self.table:
            if key not in names:
                near = difflib.get_close_matches(key.lower().replace("_", "-"), names, n=1)
                meant = f"Did you mean {near[0]}? " if near else ""
                raise BadFile(
                    f"{self.source(key[:60])} is no key that is known.",
                    f"{meant}Known here: {', '.join(names)}.",
                )

    def text(self, key: str) -> str | None:
        """A text of one line; None where there is none.

        Raises:
            BadFile: another kind, nothing in it, or more than 200 characters.
        """
        value = self.table.get(key)
        if value is None:
            return None
        if not isinstance(value, str):
            raise self._other(key, "a text", f'{key} = "…"')
        if not value.strip() or not value.isprintable() or len(value) > MAX_TEXT:
            raise BadFile(f"{self.source(key)} = {shown(value)} is not a text of one line.")
        return value.strip()

    def number(self, key: str, *, above: float = -1.0) -> float | None:
        """A finite number from 0, or from more than ``above``; None where there is none.

        Raises:
            BadFile: another kind, or out of reach.
        """
        value = self.table.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._other(key, "a number", f"{key} = 2.95")
        if not (0 <= value < MOST and value > above):  # NaN is neither
            least = "0" if above < 0 else f"more than {above:g}"
            said = f"{self.source(key)} = {shown(value)} is not a number from {least} to {MOST:g}."
            raise BadFile(said)
        return float(value)

    def switch(self, key: str) -> bool | None:
        """True or false; None where there is none.

        Raises:
            BadFile: another kind.
        """
        value = self.table.get(key)
        if value is not None and not isinstance(value, bool):
            raise self._other(key, "true or false", f"{key} = true")
        return value

    def texts(self, key: str, most: int) -> tuple[str, ...]:
        """A list of texts, each of one line.

        Raises:
            BadFile: another kind, or more than ``most``.
        """
        value = self.table.get(key, [])
        if not isinstance(value, list) or len(value) > most:
            raise self._other(key, f"a list of {most} texts at most", f'{key} = ["…", "…"]')
        items = Keys({f"{key}[{place}]": item for place, item in enumerate(value)}, self.file)
        items.parts = self.parts
        return tuple(items.text(name) or "" for name in items.table)

    def within(self, key: str) -> Keys:
        """A table of the table; an empty one where there is none.

        Raises:
            BadFile: another kind.
        """
        value = self.table.get(key, {})
        if not isinstance(value, dict):
            raise self._other(key, "a table", f"[{dotted(*self.parts, key)}]")
        return Keys(value, self.file, *self.parts, key)

    def read(self, key: str, reader: Callable[[str], T]) -> T | None:
        """What ``reader`` makes of a text; None where there is none.

        Raises:
            BadFile: what the reader refuses.
        """
        text = self.text(key)
        if text is None:
            return None
        try:
            return reader(text)
        except BadQuestion as error:
            raise BadFile(f"{self.source(key)}: {error.message}", error.hint) from None

    def _other(self, key: str, needed: str, example: str) -> BadFile:
        value = self.table[key]
        kind = _KINDS.get(type(value), "a number")
        if not isinstance(value, bool | str | dict | list | int | float):
            kind = "a time"
        found = f" ({shown(value)})" if isinstance(value, str | int | float) else ""
        return BadFile(
            f"{self.source(key)} is {kind}{found}, and {needed} is needed.", f"As in {example}."
        )
