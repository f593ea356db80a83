"""The real vLLM and the simulated one, asked the same burst: their /metrics say the same.

Seven requests one after the other warm the cache; then one long prompt keeps the engine busy for a
step while sixteen more arrive, in order, in one call, for a pool of 47 blocks of 32 tokens.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest

from kvplan.simulation.paged.request import Request as Paged
from kvplan.simulation.paged.scheduler import Scheduler
from kvplan.simulation.paged.settings import CacheGroup, PagedSettings
from tests.live.vllm_server import LIMIT_S, MODULE, free_port

pytestmark = pytest.mark.vllm

MODEL = Path(sys.prefix) / "weights" / "smollm2-135m"
BLOCK, BLOCKS, LONGEST, OUTPUT = 32, 48, 1200, 120
ARGUMENTS = ("--enforce-eager", "--block-size", str(BLOCK), "--num-gpu-blocks-override",
             str(BLOCKS), "--max-model-len", str(LONGEST))  # fmt: skip
COUNTED = ("prefix_cache_queries", "prefix_cache_hits", "num_preemptions")
RNG = random.Random(11)
Tokens = list[int]


def tokens(count: int) -> Tokens:
    return [RNG.randrange(1000, 30000) for _ in range(count)]


SHARED = tokens(160)
ALONE = [(SHARED + tokens(40), 8) for _ in range(4)] + [(tokens(300), 24) for _ in range(3)]
PLUG = (tokens(1000), 1)
TOGETHER = [SHARED + tokens(RNG.randrange(10, 90)) for _ in range(16)]


class Server:
    """A vLLM that listens."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"

    def wait(self) -> None:
        """Until it answers."""
        end = time.monotonic() + LIMIT_S
        while time.monotonic() < end:
            with suppress(URLError, ConnectionError):
                urlopen(f"{self.url}/health", timeout=5).read()
                return
            time.sleep(0.5)
        raise AssertionError("The server did not come up.")

    def complete(self, prompts: Tokens | list[Tokens], count: int) -> None:
        """Each prompt is answered with so many tokens."""
        asked = {"prompt": prompts, "max_tokens": count, "temperature": 0, "ignore_eos": True,
                 "model": str(MODEL)}  # fmt: skip
        body = json.dumps(asked).encode()
        header = {"Content-Type": "application/json"}
        urlopen(Request(f"{self.url}/v1/completions", body, header), timeout=300).read()

    def counts(self) -> dict[str, int]:
        """What it counts of its prefix cache and preemptions."""
        text = urlopen(f"{self.url}/metrics", timeout=10).read().decode()
        found = {}
        for name in COUNTED:
            match = re.search(rf"^vllm:{name}_total\{{[^\n]*\}} ([\d.e+]+)$", text, re.MULTILINE)
            assert match, f"no {name} in /metrics"
            found[name] = round(float(match[1]))
        return found


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    port = free_port()
    own = {"VLLM_CPU_KVCACHE_SPACE": "1", "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", MODULE, "--model", str(MODEL), "--port", str(port), *ARGUMENTS],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, **own},
    )
    try:
        found = Server(port)
        found.wait()
        yield found
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def really(server: Server) -> dict[str, int]:
    """What the burst adds to the real server's counts."""
    before = server.counts()
    for prompt, count in ALONE:
        server.complete(prompt, count)
    with ThreadPoolExecutor(2) as pool:
        plug = pool.submit(server.complete, *PLUG)
        time.sleep(0.05)
        pool.submit(server.complete, TOGETHER, OUTPUT).result()
        plug.result()
    after = server.counts()
    return {name: after[name] - before[name] for name in COUNTED}


class Simulated:
    """The reference scheduler, asked the same."""

    def __init__(self) -> None:
        self.scheduler = Scheduler(
            PagedSettings(
                num_blocks=BLOCKS,
                groups=(CacheGroup(kind="full", block_size=BLOCK),),
                max_num_seqs=128,
                max_num_batched_tokens=2048,
                max_model_len=LONGEST,
            )
        )
        self.sent = 0

    def send(self, prompt: Tokens, count: int) -> None:
        """A request waits; its answer is like nobody else's."""
        whole: list[Any] = [*prompt, *((self.sent, place) for place in range(count))]
        request = Paged(
            number=self.sent,
            num_prompt=len(prompt),
            num_output=count,
            keys=lambda num_tokens: tuple(whole[:num_tokens]),
            order=self.sent,
        )
        self.sent += 1
        self.scheduler.add(request)

    def step(self) -> None:
        """One step, and what comes out of it."""
        scheduled = self.scheduler.step()
        sampled = {request for request in scheduled if request.num_computed >= request.num_tokens}
        self.scheduler.settle(scheduled, sampled)
        self.scheduler.check_integrity()

    def finish(self) -> None:
        """Until nothing is left."""
        while not self.scheduler.is_idle:
            self.step()


def simulated() -> dict[str, int]:
    """What the burst adds to the simulator's counts."""
    engine = Simulated()
    for prompt, count in ALONE:
        engine.send(prompt, count)
        engine.finish()
    engine.send(*PLUG)
    engine.step()
    for prompt in TOGETHER:
        engine.send(prompt, OUTPUT)
    engine.finish()
    found: Any = engine.scheduler
    return {
        "prefix_cache_queries": found.queried_tokens,
        "prefix_cache_hits": found.hit_tokens,
        "num_preemptions": found.num_preemptions,
    }


def test_a_burst_is_counted_alike(server: Server) -> None:
    """Queries, hits and preemptions, of a pool that is too small for all at once."""
    expected = simulated()
    assert expected["num_preemptions"] > 5

    assert expected == really(server)
