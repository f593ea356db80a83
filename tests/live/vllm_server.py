"""Starts a real vLLM server of its own, reads what it prints of its pool, and ends it.

vLLM's servers are several processes: each start has a process group, which is killed whole as soon
as the line is there, after an error, or when the time is over.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, NamedTuple

MODULE = "vllm.entrypoints.openai.api_server"  # the wheel's `vllm` command looks for another name
PRINTED = re.compile(r"\w+ KV cache size: [\d,]+ tokens, Maximum concurrency for .*x$")
SET = re.compile(r"Auto set \(([\d.]+)/([\d.]+)\) GiB for KV cache")
LIMIT_S = 150


class Started(NamedTuple):
    """The line of the pool without its stamp, the pool and the node's memory where told, and all
    that was printed up to that line.
    """

    line: str
    pool_gib: float | None
    node_gib: float | None
    log: str


def start(model: Path, arguments: Sequence[str], environment: Mapping[str, str]) -> Started:
    """What one start prints.

    Raises:
        AssertionError: it ended, or took too long, before it printed its pool.
    """
    command = [sys.executable, "-m", MODULE, "--model", str(model), "--port", str(free_port())]
    process = subprocess.Popen(
        [*command, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
        env={**os.environ, **environment, "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"},
    )
    timer = threading.Timer(LIMIT_S, end, [process])
    timer.start()
    assert process.stdout is not None
    try:
        return read(process.stdout)
    finally:
        timer.cancel()
        end(process)
        process.stdout.close()


def read(log: IO[str]) -> Started:
    """The log up to the line of the pool."""
    seen: list[str] = []
    pool = node = None
    for line in log:
        seen.append(line)
        if found := SET.search(line):
            pool, node = float(found[1]), float(found[2])
        if found := PRINTED.search(line.rstrip()):
            return Started(found[0], pool, node, "".join(seen))
    raise AssertionError("The server printed no pool:\n" + "".join(seen[-30:]))


def end(process: subprocess.Popen[str]) -> None:
    """Kill the whole group."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
