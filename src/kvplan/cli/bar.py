"""A bar on a terminal for what takes more than a second; nothing where the output is none."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE_S = 1.0


@contextmanager
def bar(title: str) -> Iterator[Callable[[int, int], None] | None]:
    """What to call with how much is done and of how much; None without a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    shown = Progress(console=Console(stderr=True), transient=True)
    task = shown.add_task(title, total=None)
    began = time.monotonic()

    def told(done: int, total: int) -> None:
        if not shown.live.is_started and time.monotonic() - began > PATIENCE_S:
            shown.start()
        shown.update(task, completed=done, total=total)

    try:
        yield told
    finally:
        if shown.live.is_started:
            shown.stop()
