"""Whether what a simulation needs is installed; said in a sentence where it is not."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Final

from kvplan.core.errors import BadValue

NEEDED: Final = ("numpy", "numba", "pyarrow", "joblib")


def check_installed(
    what: str = "Simulating", extra: str = "simulate", needed: Sequence[str] = NEEDED
) -> None:
    """Nothing where all is there; ``what`` names the question in the message.

    Raises:
        BadValue: the extra is not installed.
    """
    missing = [name for name in needed if find_spec(name) is None]
    if missing:
        raise BadValue(
            f"{what} needs the {extra} extra: {', '.join(missing)} not installed.",
            f"Install it with: pip install 'kvplan[{extra}]'",
        )
