"""Whether what a simulation needs is installed; said in a sentence where it is not."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

from kvplan.core.errors import BadValue

NEEDED: Final = ("numpy", "numba", "pyarrow", "joblib")


def check_installed() -> None:
    """Nothing where all is there.

    Raises:
        BadValue: the ``simulate`` extra is not installed.
    """
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise BadValue(
            f"Simulating needs the simulate extra: {', '.join(missing)} not installed.",
            "Install it with: pip install 'kvplan[simulate]'",
        )
