"""Times, money and percentiles as people write them on a command line."""

from __future__ import annotations

import re
from typing import Final

from kvplan.core.errors import BadValue

SECONDS: Final = {"": 1.0, "s": 1.0, "ms": 1e-3, "min": 60.0, "h": 3600.0}
HOURS: Final = {"": 1.0, "h": 1.0, "hour": 1.0, "d": 24.0, "day": 24.0, "month": 730.5, "y": 8766.0,
                "year": 8766.0}  # fmt: skip
PER_SECOND: Final = {
    "": 1.0,
    "s": 1.0,
    "min": 60.0,
    "h": 3600.0,
    "hour": 3600.0,
    "day": 86400.0,
}
MOST: Final = 1e12
_NUMBER: Final = re.compile(r"\s*(\d{1,15}(?:[_,]\d{3})*(?:\.\d{1,9})?|\.\d{1,9})\s*(.{0,12}?)\s*")


def parse_seconds(given: float | str, what: str) -> float:
    """``2s``, ``50ms``, ``1.5``; above 0.

    Raises:
        BadValue: anything else; ``what`` names it, as ``--ttft``.
    """
    number, unit = _split(given, what, "a time such as 2s or 50ms")
    if unit not in SECONDS or not number:
        raise BadValue(f"{what} {str(given)[:40]} is not a time.", "Write it like 2s or 50ms.")
    return number * SECONDS[unit]


def parse_pause(given: float | str, what: str) -> float:
    """A time that may be 0."""
    return 0.0 if str(given).strip() in ("0", "0s", "0.0") else parse_seconds(given, what)


def parse_budget(given: float | str) -> float:
    """Money an hour: ``10/h``, ``900/day``, ``20000/month``; without a unit an hour's.

    Raises:
        BadValue: anything else.
    """
    number, unit = _split(given, "--budget", "money such as 10/h")
    unit = unit.removeprefix("/").strip()
    if unit not in HOURS:
        raise BadValue(
            f"--budget {str(given)[:40]} is not money for a time.",
            "Write it like 10/h.",
        )
    return number / HOURS[unit]


def parse_rate(given: float | str) -> float:
    """Requests a second: ``2``, ``2/s``, ``30/min``, ``5000/h``; above 0.

    Raises:
        BadValue: anything else.
    """
    number, unit = _split(given, "--rate", "a rate such as 2/s")
    unit = unit.removeprefix("/").strip()
    if unit not in PER_SECOND or not number:
        raise BadValue(f"--rate {str(given)[:40]} is not a rate of requests.", "Write it like 2/s.")
    return number / PER_SECOND[unit]


def parse_percentile(given: float | str, what: str) -> float:
    """``p95``, ``95``, ``95%`` or ``0.95`` as a share from 0.5 and below 1.

    Raises:
        BadValue: anything else.
    """
    text = str(given).strip().lower().removeprefix("p").removesuffix("%")
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    share = number / 100 if number >= 1 else number
    if not 0.5 <= share < 1:
        raise BadValue(f"{what} {str(given)[:40]} is not a percentile.", "Write it like p95.")
    return share


def parse_share(given: float | str, what: str, example: str = "0.9 or 90%") -> float:
    """``0.9`` or ``90%``, from 0 and below 1.

    Raises:
        BadValue: anything else.
    """
    text = str(given).strip()
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = -1.0
    if not 0 <= share < 1:
        raise BadValue(f"{what} {text[:40]} is not a share below 1.", f"Write {example}.")
    return share


def _split(given: object, what: str, example: str) -> tuple[float, str]:
    if isinstance(given, int | float) and not isinstance(given, bool):
        number, unit = float(given), ""
    else:
        match = _NUMBER.fullmatch(str(given)) if len(str(given)) <= 40 else None
        if match is None:
            raise BadValue(f"{what} {str(given)[:40]} cannot be read.", f"Write {example}.")
        number, unit = float(match[1].replace("_", "").replace(",", "")), match[2].lower()
    if not 0 <= number <= MOST:
        raise BadValue(f"{what} {str(given)[:40]} is out of reach.")
    return number, unit
