"""How the engine's functions are compiled: once, kept on disk, without counting references.

No function here makes an array: all of them belong to the caller for as long as a call lasts, so
their reference counts need no care. Counting them took more than half of the time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numba

from kvplan.simulation.fast import kept

OPTIONS: Final[dict[str, Any]] = {"cache": True, "_nrt": False, "error_model": "numpy"}
# Without the code that takes Python's objects apart, which compiled callers do not need.
INNER: Final = OPTIONS | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


CONFIG: Final[Any] = numba.config


if kept.is_first_time():
    kept.forget_others()


def _compile(function: Callable[..., Any], options: dict[str, Any]) -> Callable[..., Any]:
    before, CONFIG.CACHE_DIR = CONFIG.CACHE_DIR, str(kept.folder())
    try:
        made: Callable[..., Any] = numba.njit(**options)(function)
    finally:
        CONFIG.CACHE_DIR = before
    return made


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """For compiled callers alone."""
    return _compile(function, INNER)


def entry(function: Callable[..., Any]) -> Callable[..., Any]:
    """For Python's callers."""
    return _compile(function, OPTIONS)
