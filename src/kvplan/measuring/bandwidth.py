"""How fast this machine's memory is read and written by one thread.

A block far larger than any cache is copied from one place to another again and again; the bytes
read and written over the least time are the bandwidth. The time is the thread's own, so that
waiting for a core does not count, and other work that uses the memory only makes a run slower: the
fastest is the one that says what the memory can do.
"""

from __future__ import annotations

import time
from typing import Final

from kvplan.core.units import MIB

BLOCK: Final = 384 * MIB
RUNS: Final = 7


def host_bandwidth(block: int = BLOCK, runs: int = RUNS) -> int:
    """Bytes a second of one thread, read and written together."""
    source, target = bytearray(b"1") * block, bytearray(block)
    view = memoryview(target)
    view[:] = source  # from here the pages of both are there
    return round(2 * block / min(_copy_s(view, source) for _ in range(runs)))


def _copy_s(target: memoryview, source: bytearray) -> float:
    start = time.thread_time()
    target[:] = source
    return time.thread_time() - start
