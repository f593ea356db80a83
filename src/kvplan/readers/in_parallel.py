"""Many waits side by side, with a bar on a terminal where they take more than a moment."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, as_completed, wait
from typing import TypeVar

T = TypeVar("T")

WORKERS = 8
PATIENCE_S = 1.0


def in_parallel(act: Callable[[str], T], names: Iterable[str], title: str) -> list[T]:
    """What ``act`` returns for each name, in order; the first that fails ends all."""
    with ThreadPoolExecutor(WORKERS) as pool:
        running = [pool.submit(act, name) for name in names]
        try:
            _watch(running, title)
            return [future.result() for future in running]
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _watch(running: list[Future[T]], title: str) -> None:
    """Wait until all are done or one fails, with a bar on stderr after a second."""
    pending = wait(running, PATIENCE_S, FIRST_EXCEPTION).not_done
    if not pending or not sys.stderr.isatty():
        wait(pending, return_when=FIRST_EXCEPTION)
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=len(running), completed=len(running) - len(pending))
        for future in as_completed(pending):
            bar.advance(task)
            if future.exception() is not None:
                return
