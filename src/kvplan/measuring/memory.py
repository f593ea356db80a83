"""What the server holds at most: a card's memory by NVML, else its own processes' by psutil.

Both only of a server on this machine: of another nobody here can see. NVML counts all that uses the
card; of a server on the CPU the resident memory of the process that listens and of its children is
counted, shared pages of a mapped file among them.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class Memory:
    """A gauge that is read again and again; ``source`` says of what."""

    source: str | None = None
    card: str | None = None
    card_bytes: int | None = None
    _cards: tuple[Any, ...] = ()
    _process: Any = None

    def now(self) -> int | None:
        """Bytes in use; None where nothing can be seen."""
        if self._cards:
            import pynvml

            return sum(int(pynvml.nvmlDeviceGetMemoryInfo(card).used) for card in self._cards)
        return _resident(self._process) if self._process is not None else None


def memory_of(port: int, *, is_local: bool, pid: int | None = None) -> Memory:
    """The gauge of a server that listens on a port of this machine."""
    if not is_local:
        return Memory()
    process = _process(port, pid)
    if cards := _cards(process):
        import pynvml

        name = pynvml.nvmlDeviceGetName(cards[0])
        total = int(pynvml.nvmlDeviceGetMemoryInfo(cards[0]).total)
        return Memory(source=f"NVML, {len(cards)} × {name}", card=str(name), card_bytes=total,
                      _cards=tuple(cards))  # fmt: skip
    if process is None:
        return Memory()
    return Memory(source="resident memory of the server's processes", _process=process)


def _cards(process: Any) -> list[Any]:
    """The cards on which the server's processes run."""
    try:
        import pynvml
    except ImportError:
        return []
    with suppress(pynvml.NVMLError):
        pynvml.nvmlInit()
        handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
        if process is None:
            return handles
        pids = {process.pid, *(child.pid for child in _children(process))}
        used = []
        for card in handles:
            running = pynvml.nvmlDeviceGetComputeRunningProcesses(card)
            if pids & {one.pid for one in running}:
                used.append(card)
        return used
    return []


def _process(port: int, pid: int | None) -> Any:
    """The process that listens on the port."""
    try:
        import psutil
    except ImportError:
        return None
    with suppress(psutil.Error, OSError):
        if pid is not None:
            return psutil.Process(pid)
        for found in psutil.net_connections("tcp"):
            if found.laddr and found.laddr.port == port and found.status == psutil.CONN_LISTEN:
                return psutil.Process(found.pid) if found.pid else None
    return None


def _children(process: Any) -> list[Any]:
    import psutil

    with suppress(psutil.Error):
        return list(process.children(recursive=True))
    return []


def _resident(process: Any) -> int | None:
    import psutil

    with suppress(psutil.Error):
        return int(process.memory_info().rss) + sum(
            int(child.memory_info().rss) for child in _children(process)
        )
    return None
