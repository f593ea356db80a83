"""A bar on a terminal for what takes more than a second; nothing where the output is none."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

PATIENCE_S = 1.0


class _Said(logging.Handler):
    """What the package says of its progress, above the bar."""

    def __init__(self, console: Any) -> None:
        super().__init__(logging.INFO)
        self.console = console

    def emit(self, record: logging.LogRecord) -> None:
        """One line."""
        self.console.print(record.getMessage(), style="dim", markup=False)


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
    said, logger = _Said(shown.console), logging.getLogger("kvplan")
    before = logger.level

    def told(done: int, total: int) -> None:
        if not shown.live.is_started and time.monotonic() - began > PATIENCE_S:
            shown.start()
        shown.update(task, completed=done, total=total)

    logger.addHandler(said)
    logger.setLevel(logging.INFO)
    try:
        yield told
    finally:
        logger.removeHandler(said)
        logger.setLevel(before)
        if shown.live.is_started:
            shown.stop()
