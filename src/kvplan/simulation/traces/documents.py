"""JSON values of a text: a line each, the items of one long list, or one object over many lines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain
from typing import Any

from kvplan.core.errors import BadFile
from kvplan.core.units import MIB, format_bytes
from kvplan.simulation.traces.columns import Columns
from kvplan.simulation.traces.lines import Line

LARGEST = 256 * MIB  # of an object over many lines, and of an item of a list

_WHITE = " \t\r\n"


# NaN is read: the columns refuse it where it matters, and a list goes on behind it.
DECODER = json.JSONDecoder()


def row_of(value: Any) -> dict[str, Any] | str:
    """A line as an object, or why it is none."""
    if isinstance(value, bytes):
        try:
            value = DECODER.decode(value.decode("utf-8"))
        except RecursionError:
            return "is nested too deeply"
        except UnicodeDecodeError:
            return "is not UTF-8"
        except ValueError:
            return "is not JSON"
    return value if isinstance(value, dict) else "is no object"


def documents_of(lines: Iterator[Line], held: Columns) -> Iterator[tuple[int, Any]]:
    """Values with their lines: bytes that are still to be parsed, or objects of a list.

    Raises:
        BadFile: a list that is cut short, or an item that is larger than 256 MiB.
    """
    number, first = next(lines)
    opening = first.strip()
    if opening.startswith(b"["):
        return _items(chain([(number, first)], lines), held)
    if isinstance(row_of(first), dict):
        return chain([(number, first)], lines)
    second = next(lines, None)
    head = [(number, first)] if second is None else [(number, first), second]
    one_a_line = second is None or second[1].lstrip().startswith(b"{")
    return chain(head, lines) if one_a_line else _whole(chain(head, lines), held)


def _whole(lines: Iterator[Line], held: Columns) -> Iterator[tuple[int, Any]]:
    """One object over many lines."""
    pieces, size = [], 0
    for _, line in lines:
        pieces.append(line)
        size += len(line)
        if size > LARGEST:
            raise BadFile(f"{held.source} is one object of more than {format_bytes(LARGEST)}.")
    yield 1, b"\n".join(pieces)


def _items(lines: Iterator[Line], held: Columns) -> Iterator[tuple[int, Any]]:
    """The items of a list, however they are spread over lines; their number is their line's."""
    text, line = "", 0
    opened = False
    needed = 0  # an item of which so much was there was not whole
    for line, piece in lines:
        text += piece.decode("utf-8", "replace") + "\n"
        if not opened:
            text, opened = text.lstrip(_WHITE)[1:], True
        if len(text) < needed:
            continue
        found, text, ended = _parsed(text)
        yield from ((line, item) for item in found)
        if ended:
            return
        needed = 2 * len(text)
        if len(text) > LARGEST:
            raise BadFile(f"An item of {held.source} is larger than {format_bytes(LARGEST)}.")
    found, text, ended = _parsed(text)
    yield from ((line, item) for item in found)
    if not ended:
        held.skip(line, "the list has no end, or an item of it is not JSON")


def _parsed(text: str) -> tuple[list[Any], str, bool]:
    """The items that are whole, what is left of the text, and whether the list ended."""
    found: list[Any] = []
    place = 0
    while True:
        while place < len(text) and text[place] in _WHITE + ",":
            place += 1
        if text[place : place + 1] == "]":
            return found, "", True
        try:
            item, place = DECODER.raw_decode(text, place)
        except (ValueError, RecursionError):
            return found, text[place:], False
        found.append(item)
