"""The page's server under a bounded load: 50 people at once on loopback, for a few seconds.

Answers a second of the API, every question new, and as people ask (a few over and over); the time
to a page's answer when one control changes; the first answer of a server that has just started. The
peer is the same question asked of the package in this process, with no server between. Answers a
second of processor time stand beside: they do not suffer from what else the machine does.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlencode

import psutil

import kvplan

PEOPLE = 50
NUMBER = 1500  # answers of each measurement
MODELS = ("qwen3-32b", "llama-3.1-8b", "gemma-3-27b", "gpt-oss-120b", "mistral-7b-instruct-v0.2")
CARDS = ("h100-sxm-80gb", "h200", "b200", "a100-sxm-80gb", "l40s")


def question(place: int, length: int) -> dict[str, object]:
    """A question of fit; another length is another question."""
    return {
        "model": MODELS[place % len(MODELS)],
        "gpu": CARDS[place // len(MODELS) % len(CARDS)],
        "gpus": 2,
        "context": 2048 + length,
    }


@contextmanager
def server() -> Iterator[tuple[int, psutil.Process, float]]:
    """The port of a server of its own, its process, and the seconds until its first answer."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = int(found.getsockname()[1])
    words = [sys.executable, "-m", "kvplan", "ui", "--port", str(port), "--offline"]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    try:
        _wait(port)
        before = time.perf_counter()
        asyncio.run(_ask(port, [f"/?{urlencode(question(0, 0))}"], PEOPLE))
        yield port, psutil.Process(process.pid), time.perf_counter() - before
    finally:
        process.terminate()
        process.wait(10)


def _wait(port: int) -> None:
    for _ in range(400):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.02)


async def _ask(port: int, paths: list[str], people: int) -> list[float]:
    """The seconds of each request, so many connections taking them in turn.

    Raises:
        RuntimeError: an answer that is none.
    """
    waiting, taken = iter(paths), []

    async def person() -> None:
        source, sink = await asyncio.open_connection("127.0.0.1", port)
        for path in waiting:
            before = time.perf_counter()
            sink.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
            head = (await source.readuntil(b"\r\n\r\n")).decode()
            length = re.search(r"content-length: (\d+)", head, re.I)
            await source.readexactly(int(length[1]) if length else 0)
            if " 200 " not in head.split("\r\n")[0]:
                raise RuntimeError(f"{path}: {head.splitlines()[0]}")
            taken.append(time.perf_counter() - before)
        sink.close()

    await asyncio.gather(*(person() for _ in range(min(people, len(paths)))))
    return taken


def cpu_s(process: psutil.Process) -> float:
    """Processor time of a server and its workers so far."""
    times = [one.cpu_times() for one in (process, *process.children(recursive=True))]
    return float(sum(one.user + one.system for one in times))


def load(port: int, process: psutil.Process, kind: str, paths: list[str]) -> None:
    """Print what so many people at once get."""
    before, used = time.perf_counter(), cpu_s(process)
    taken = sorted(asyncio.run(_ask(port, paths, PEOPLE)))
    spent, used = time.perf_counter() - before, cpu_s(process) - used
    print(
        f"{PEOPLE} people, {kind}: {len(taken) / spent:,.0f} answers/s "
        f"({len(taken) / used:,.0f} a second of processor time), "
        f"median {statistics.median(taken) * 1e3:.0f} ms, "
        f"p95 {taken[int(0.95 * len(taken))] * 1e3:.0f} ms, no error"
    )


def alone() -> float:
    """Answers a second of processor time of the package itself."""
    before = time.process_time()
    for place in range(200):
        json.dumps(kvplan.fit(**question(place, 16 * place), offline=True).to_dict())  # type: ignore[arg-type]
    return 200 / (time.process_time() - before)


def main() -> None:
    """One server, four measurements."""
    with server() as (port, process, first_s):
        print(f"the first answer of a cold server: {first_s * 1e3:.0f} ms")
        new = [f"/api/fit?{urlencode(question(i, 32 + 16 * i))}" for i in range(NUMBER)]
        load(port, process, "each question new", new)
        load(port, process, "twenty questions over and over", (new[:20] * NUMBER)[:NUMBER])
        changes = [f"/?{urlencode(question(0, 7 + 16 * i))}&part=answer" for i in range(60)]
        taken = asyncio.run(_ask(port, changes, 1))
        print(f"a control's change: median {statistics.median(taken) * 1e3:.0f} ms")
    print(f"the package itself: {alone():,.0f} answers a second of processor time")


if __name__ == "__main__":
    main()
