"""Units: parsing, formatting, and the two named roundings.

Bytes are integers everywhere inside; units exist only here. ``GiB`` is 2**30 and ``GB`` is 10**9,
and neither is ever printed without its name.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

from kvplan.core.errors import BadValue

KIB, MIB, GIB, TIB = 1 << 10, 1 << 20, 1 << 30, 1 << 40
KB, MB, GB, TB = 10**3, 10**6, 10**9, 10**12

USD: Final = "USD"

BYTE_UNITS = {
    "B": 1, "KIB": KIB, "MIB": MIB, "GIB": GIB, "TIB": TIB, "KB": KB, "MB": MB, "GB": GB, "TB": TB,
}  # fmt: skip
TOKEN_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20}

MAX_BYTES = 1 << 60
MAX_TOKENS = 1 << 40

_QUANTITY = re.compile(r"\s*(\d{1,18}(?:[_,]\d{3})*(?:\.\d{1,18})?|\.\d{1,18})\s*([A-Za-z]*)\s*")


def ceil_div(dividend: int, divisor: int) -> int:
    """The least whole number of ``divisor`` that covers ``dividend``: ``ceil_div(17, 16) == 2``."""
    return -(-dividend // divisor)


def round_up(value: int, multiple: int) -> int:
    """The least multiple of ``multiple`` not below ``value``: ``round_up(17, 16) == 32``."""
    return ceil_div(value, multiple) * multiple


def _quantity(text: str, what: str, example: str) -> tuple[Fraction, str]:
    match = _QUANTITY.fullmatch(text) if len(text) <= 64 else None
    if not match:
        raise BadValue(f"{text[:64]!r} is not {what}.", f"Write it like {example}.")
    number = match[1].replace("_", "").replace(",", "")
    return Fraction(number), match[2].upper()


def parse_bytes(text: str | int) -> int:
    """Bytes from ``24GiB``, ``80GB``, ``81559MiB`` or an integer.

    Raises:
        BadValue: no unit, an unknown unit, or more than 2**60 bytes.
    """
    if isinstance(text, int) and not isinstance(text, bool):
        return _bounded(text, "bytes", MAX_BYTES)
    number, unit = _quantity(str(text), "a size", "24GiB (2^30) or 24GB (10^9)")
    if unit not in BYTE_UNITS:
        asked = f"has no unit we know ({unit})" if unit else "has no unit"
        raise BadValue(f"The size {text!r} {asked}.", "Write B, MiB, GiB (2^30), MB or GB (10^9).")
    return _bounded(round(number * BYTE_UNITS[unit]), "bytes", MAX_BYTES)


def parse_tokens(text: str | int) -> int:
    """Tokens from ``4096``, ``4k`` (4096), ``32k`` (32768) or ``1m`` (1048576).

    Raises:
        BadValue: not a whole number of tokens, or more than 2**40.
    """
    if isinstance(text, int) and not isinstance(text, bool):
        return _bounded(text, "tokens", MAX_TOKENS)
    number, unit = _quantity(str(text), "a number of tokens", "4096, 32k (32768) or 1m (1048576)")
    tokens = number * TOKEN_UNITS.get(unit, 0)
    if unit not in TOKEN_UNITS or tokens.denominator != 1:
        raise BadValue(f"{text!r} is not a number of tokens.", "Write 4096, 32k (32768) or 1m.")
    return _bounded(int(tokens), "tokens", MAX_TOKENS)


def parse_count(value: object, what: str, most: int) -> int:
    """A number of things from 1 to ``most``, also as digits.

    Raises:
        BadValue: anything else; ``what`` names it, as ``--gpus``.
    """
    digits = isinstance(value, str) and len(value) <= 20 and value.strip().isdecimal()
    count = int(value) if digits else value  # type: ignore[call-overload]
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= most:
        raise BadValue(f"{what} {str(value)[:40]} is not a whole number from 1 to {most:,}.")
    return count


def parse_bandwidth(text: str | int) -> int:
    """Bytes per second from ``2000GB/s``, ``3.35TB/s`` or an integer of bytes per second."""
    if isinstance(text, int):
        return parse_bytes(text)
    rate = str(text).strip()
    for ending in ("/s", "ps", "/S", "/sec"):
        rate = rate.removesuffix(ending)
    return parse_bytes(rate)


def parse_currency(given: object, what: str) -> str:
    """A currency's code or sign, in capitals: ``USD``, ``€``.

    Raises:
        BadValue: nothing, or more than 8 characters; ``what`` names it, as ``--currency``.
    """
    said = str(given)
    if not said.strip() or not said.isprintable() or len(said) > 8:
        raise BadValue(f"{what} {said[:20]!r} is not a currency.", "Write it like USD or €.")
    return said.strip().upper()


def _bounded(value: int, what: str, most: int) -> int:
    if not 0 <= value <= most:
        raise BadValue(f"{value:,} {what} is outside 0 to {most:,}.")
    return value


def format_bytes(value: int) -> str:
    """A size for people, in binary units that are named: ``4 GiB``, ``56.7 GiB``, ``131,072 B``."""
    for unit, size in (("TiB", TIB), ("GiB", GIB), ("MiB", MIB)):
        if abs(value) >= size:
            return f"{_short(value / size)} {unit}"
    return f"{value:,} B"


def format_gib(value: int) -> str:
    """A size in GiB whatever its magnitude, for columns that are compared: ``0.50 GiB``."""
    return f"{value / GIB:,.2f} GiB"


def _short(number: float) -> str:
    text = f"{number:,.2f}" if abs(number) < 100 else f"{number:,.1f}"
    return text.rstrip("0").rstrip(".")


def format_tokens(value: int) -> str:
    """Tokens for people: ``32,768``."""
    return f"{value:,}"


def format_seconds(value: float) -> str:
    """A time for people, with three digits: ``22.7 ms``, ``1.53 s``."""
    if value < 1e-3:
        return f"{value * 1e6:.3g} µs"
    return f"{value * 1e3:.3g} ms" if value < 1 else f"{value:.3g} s"


def format_count(value: int) -> str:
    """A parameter count for people: ``8.03 B``, ``135 M`` (billions and millions, 10-based)."""
    for name, size in (("T", 10**12), ("B", 10**9), ("M", 10**6)):
        if value >= size:
            return f"{_short(value / size)} {name}"
    return f"{value:,}"
