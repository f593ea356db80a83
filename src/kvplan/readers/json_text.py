"""JSON from a source that is not trusted: bounded, finite, each key once.

The standard parser accepts NaN, keeps the last of two equal keys and nests until the stack ends;
here each of these is a sentence. Nothing is ever executed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kvplan.core.errors import BadFile, SourceUnreachable
from kvplan.core.units import format_bytes

# The largest published config is 3.1 MB (a list of 50,000 quantised modules). 6 MiB of the most
# wasteful JSON, empty lists, takes about 140 MB as objects.
MAX_BYTES = 6 << 20


class _Refused(ValueError):
    """What the parser's hooks found."""


def parse_json(text: str | bytes, what: str, most: int = MAX_BYTES) -> Any:
    """The value that ``text`` holds, of at most ``most`` bytes; ``what`` names it in messages.

    Raises:
        BadFile: too large, not UTF-8, not JSON, nested too deeply, NaN or infinite numbers, a key
            twice in one object, or a number of thousands of digits.
    """
    if len(text) > most:
        raise BadFile(f"{what} is larger than {most >> 20} MiB; a config is smaller.")
    try:
        decoded = text if isinstance(text, str) else text.decode("utf-8-sig")
        return json.loads(decoded, parse_constant=_no_constant, object_pairs_hook=_once)
    except _Refused as error:
        raise BadFile(f"{what} is refused: {error}.") from None
    except RecursionError:
        raise BadFile(f"{what} is nested too deeply to be a config.") from None
    except UnicodeDecodeError as error:
        raise BadFile(f"{what} is not UTF-8 text (byte {error.start:,}).") from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise BadFile(f"{what} is not JSON: {error.msg} at {place}.") from None
    except ValueError:
        raise BadFile(f"{what} holds a number with too many digits.") from None


def parse_object(text: str | bytes, what: str, most: int = MAX_BYTES) -> dict[str, Any]:
    """The object that ``text`` holds.

    Raises:
        BadFile: as ``parse_json``, or the value is no object.
    """
    value = parse_json(text, what, most)
    if not isinstance(value, dict):
        raise BadFile(f"{what} holds {_kind(value)} where an object of keys is needed.")
    return value


def read_bounded(path: Path, most: int = MAX_BYTES) -> bytes:
    """The bytes of a file of at most ``most`` bytes.

    Raises:
        BadFile: larger, or no regular file (a pipe, a device).
        SourceUnreachable: it cannot be read.
    """
    try:
        if path.exists() and not path.is_file():
            raise BadFile(f"{path} is not a regular file.")
        with path.open("rb") as file:
            data = file.read(most + 1)
    except OSError as error:
        raise SourceUnreachable(f"{path} cannot be read: {error.strerror or error}.") from None
    if len(data) > most:
        raise BadFile(f"{path} is larger than {format_bytes(most)}; such a file is smaller.")
    return data


def shown(value: object) -> str:
    """A value for a sentence, at most 60 characters of it."""
    try:
        text = repr(value)
    except ValueError:  # digits by the thousand, which Python does not write
        return "a number with too many digits"
    return text if len(text) <= 60 else f"{text[:57]}…"


def _no_constant(name: str) -> None:
    raise _Refused(f"it holds {name}, which JSON has no number for")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _Refused(f"the key {key[:60]!r} is there twice in one object")
            seen.add(key)
    return found


def _kind(value: Any) -> str:
    names = {list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
