"""How the engine's functions are compiled: once, kept on disk, without counting references.

No function here makes an array: all of them belong to the caller for as long as a call lasts, so
their reference counts need no care. Counting them took more than half of the time.

What is compiled is kept in a folder named for the sources of all of them, because a function holds
the code of those that it calls: a change in one file is a change in all.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import numba

OPTIONS: Final[dict[str, Any]] = {"cache": True, "_nrt": False, "error_model": "numpy"}
# Without the code that takes Python's objects apart, which compiled callers do not need.
INNER: Final = OPTIONS | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


CONFIG: Final[Any] = numba.config


def _folder() -> Path:
    """Where this state of the sources is kept: beside them, or with the user's caches."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    digest = sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    base = Path(CONFIG.CACHE_DIR or Path(__file__).parent / "__pycache__")
    if not os.access(base if base.exists() else base.parent, os.W_OK):
        base = Path(os.environ.get("KVPLAN_CACHE") or "~/.cache/kvplan").expanduser() / "compiled"
    return base / f"engine-{digest}"


def _forget_others(folder: Path) -> None:
    """What other states of the sources left there."""
    for other in folder.parent.glob("engine-*"):
        if other.name != folder.name:
            shutil.rmtree(other, ignore_errors=True)


FOLDER: Final = _folder()
IS_FIRST_TIME: Final = not FOLDER.exists()  # to compile takes half a minute
if IS_FIRST_TIME:
    _forget_others(FOLDER)


def _compile(function: Callable[..., Any], options: dict[str, Any]) -> Callable[..., Any]:
    before, CONFIG.CACHE_DIR = CONFIG.CACHE_DIR, str(FOLDER)
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
