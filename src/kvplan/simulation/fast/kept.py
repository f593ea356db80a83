"""Where the compiled engine is kept: a folder named for the sources of all of its functions.

A compiled function holds the code of those that it calls: a change in one file is a change in all.
"""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import tempfile
from functools import cache
from hashlib import sha256
from pathlib import Path

LOGGER = logging.getLogger("kvplan")


@cache
def folder() -> Path:
    """Of this state of the sources: beside them, with the user's caches, or for this run alone."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    digest = sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    beside = os.environ.get("NUMBA_CACHE_DIR") or Path(__file__).parent / "__pycache__"
    own = Path(os.environ.get("KVPLAN_CACHE") or "~/.cache/kvplan").expanduser() / "compiled"
    for base in (Path(beside), own):
        if _is_writable(base):
            return base / f"engine-{digest}"
    base = Path(tempfile.mkdtemp(prefix="kvplan-"))
    atexit.register(shutil.rmtree, base, ignore_errors=True)
    return base / f"engine-{digest}"


def is_first_time() -> bool:
    """Whether the engine is still to be compiled; a run that was interrupted there kept a part."""
    return not any(folder().glob("**/clock.run-*.nbi"))


@cache
def tell_first_time() -> None:
    """Says in the log, once, why the first run takes so long."""
    if is_first_time():
        LOGGER.info("Compiling the simulator: once, about half a minute.")


def forget_others() -> None:
    """What other states of the sources left there."""
    for other in folder().parent.glob("engine-*"):
        if other.name != folder().name:
            shutil.rmtree(other, ignore_errors=True)


def _is_writable(base: Path) -> bool:
    try:
        base.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=base):
            return True
    except OSError:
        return False
