"""How fast this machine's memory is read and written, by one thread or by several.

A block far larger than any cache is copied from one place to another again and again; the bytes
read and written over the least time are the bandwidth. The time is the thread's own, so that
waiting for a core does not count, and other work that uses the memory only makes a run slower: the
fastest is the one that says what the memory can do. Several threads are as many processes at once,
each at its own best: their sum is rather too high than too low, as a bound needs it.

    python -m kvplan.measuring.bandwidth      one thread's, in bytes a second
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import Final

from kvplan.core.units import MIB

BLOCK: Final = 384 * MIB
RUNS: Final = 7
MOST_PROCESSES: Final = 16
PATIENCE_S: Final = 120.0


def host_bandwidth(threads: int = 1) -> int:
    """Bytes a second of so many threads, read and written together."""
    if threads == 1:
        return own_bandwidth()
    command = [sys.executable, "-m", "kvplan.measuring.bandwidth"]
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for _ in range(min(threads, os.cpu_count() or 1, MOST_PROCESSES))
    ]
    return sum(int(process.communicate(timeout=PATIENCE_S)[0]) for process in running)


def own_bandwidth(block: int = BLOCK, runs: int = RUNS) -> int:
    """Bytes a second of this thread."""
    source, target = bytearray(b"1") * block, bytearray(block)
    view = memoryview(target)
    view[:] = source  # from here the pages of both are there
    return round(2 * block / min(_copy_s(view, source) for _ in range(runs)))


def _copy_s(target: memoryview, source: bytearray) -> float:
    start = time.thread_time()
    target[:] = source
    return time.thread_time() - start


if __name__ == "__main__":
    print(own_bandwidth())  # noqa: T201
