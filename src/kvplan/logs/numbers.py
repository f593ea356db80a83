"""Figures as engines print them: binary sizes, thousands, decimal commas of some locales.

14.99 GiB    2,640,144 tokens    12312,00 MiB    1.234,56 MiB
"""

from __future__ import annotations

from kvplan.core.units import GIB, KIB, MIB, TIB

# By the unit's first letter: engines divide by powers of two whatever they write after it.
_BINARY = {"K": KIB, "M": MIB, "G": GIB, "T": TIB, "B": 1}
_DECIMAL = {"K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "B": 1}
MOST = 1 << 62


def whole(text: str) -> int | None:
    """A whole number, whatever parts its thousands: ``2,640,144``, ``2.640.144``, ``2 640 144``."""
    digits = "".join(c for c in text if c.isdecimal())
    if not digits or len(digits) > 18:
        return None
    return -int(digits) if text.lstrip().startswith("-") else int(digits)


def decimal(text: str) -> float | None:
    """A decimal number; the last of ``.`` and ``,`` parts the decimals, unless it parts thousands.

    Three digits behind the only comma are thousands: engines print one, two or four decimals.
    """
    text = text.strip()
    comma, point = text.rfind(","), text.rfind(".")
    if comma > point:
        behind = len(text) - comma - 1
        thousands = point < 0 and behind == 3 and text.lstrip("-")[0] != "0"
        if not thousands and text.count(",") == 1:
            text = text.replace(".", "").replace(",", ".")
        text = text.replace(",", "")
    else:
        text = text.replace(",", "")
    try:
        value = float(text)
    except ValueError:
        return None
    return value if abs(value) < MOST else None


def size(text: str, *, decimal_gb: bool = False) -> int | None:
    """Whole bytes of ``14.99 GiB``; ``GB`` is 2^30 too unless ``decimal_gb`` says it is 10^9."""
    unit = text.lstrip("-0123456789., \t")
    value = decimal(text[: len(text) - len(unit)])
    scales = _DECIMAL if decimal_gb and unit[1:2] != "i" else _BINARY
    scale = scales.get(unit[:1].upper() or "B")
    if value is None or scale is None:
        return None
    found = round(value * scale)
    return found if abs(found) < MOST else None
