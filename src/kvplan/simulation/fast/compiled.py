"""How the engine's functions are compiled: once, kept on disk, without counting references.

No function here makes an array: all of them belong to the caller for as long as a call lasts, so
their reference counts need no care. Counting them took more than half of the time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """For compiled callers alone: without the code that takes Python's objects apart."""
    made: Callable[..., Any] = njit(
        cache=True, _nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True
    )(function)
    return made


def entry(function: Callable[..., Any]) -> Callable[..., Any]:
    """For Python's callers."""
    made: Callable[..., Any] = njit(cache=True, _nrt=False)(function)
    return made
