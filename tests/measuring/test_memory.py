"""The server's memory: a card's where there is one, else its own process's."""

from __future__ import annotations

import os
import socket
import sys
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from kvplan.measuring.bandwidth import own_bandwidth
from kvplan.measuring.memory import memory_of


def test_the_process_that_listens_is_found() -> None:
    """Its resident memory, and that of its children."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        memory = memory_of(listening.getsockname()[1], is_local=True)
        own = psutil.Process(os.getpid()).memory_info().rss

        assert memory.source == "resident memory of the server's processes"
        assert (memory.now() or 0) >= own * 0.9


def test_nothing_is_seen_of_another_machine() -> None:
    """A port of ours says nothing of a server elsewhere."""
    memory = memory_of(8000, is_local=False)

    assert (None, None) == (memory.source, memory.now())


@pytest.fixture
def two_cards(monkeypatch: pytest.MonkeyPatch) -> None:
    """NVML as it answers on a machine of two cards, of which this process uses the second."""

    class NVMLError(Exception):
        pass

    def running(card: int) -> list[Any]:
        return [SimpleNamespace(pid=os.getpid())] if card == 1 else []

    fake: Any = SimpleNamespace(
        NVMLError=NVMLError,
        nvmlInit=lambda: None,
        nvmlDeviceGetCount=lambda: 2,
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetName=lambda _: "NVIDIA H100 80GB HBM3",
        nvmlDeviceGetMemoryInfo=lambda card: SimpleNamespace(used=(card + 1) << 30, total=80 << 30),
        nvmlDeviceGetComputeRunningProcesses=running,
    )
    monkeypatch.setitem(sys.modules, "pynvml", fake)


@pytest.mark.usefixtures("two_cards")
def test_a_card_is_the_one_that_the_server_uses() -> None:
    """The second card's memory and name alone."""
    memory = memory_of(1, is_local=True, pid=os.getpid())

    assert ("NVIDIA H100 80GB HBM3", 2 << 30) == (memory.card, memory.now())


def test_memory_has_a_rate() -> None:
    """A copy's bytes over its own time: more than a disk's, less than any memory's."""
    assert 10**8 < own_bandwidth(block=8 << 20, runs=3) < 10**13
