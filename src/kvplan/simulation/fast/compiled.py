"""How the engine's functions are compiled: once, kept on disk, without counting references.

No function here makes an array: all of them belong to the caller for as long as a call lasts, so
their reference counts need no care. Counting them took more than half of the time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numba

OPTIONS: Final[dict[str, Any]] = {"cache": True, "_nrt": False}
# Without the code that takes Python's objects apart, which compiled callers do not need.
INNER: Final = OPTIONS | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """For compiled callers alone."""
    made: Callable[..., Any] = numba.njit(**INNER)(function)
    return made


def entry(function: Callable[..., Any]) -> Callable[..., Any]:
    """For Python's callers."""
    made: Callable[..., Any] = numba.njit(**OPTIONS)(function)
    return made
