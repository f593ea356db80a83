"""The real vLLM on the CPU measured: preemptions provoked and counted, reuse as it counts it.

Run by ``make test-vllm``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

import kvplan
from tests.live.vllm_server import MODULE, end, free_port

pytestmark = pytest.mark.vllm

MODEL = Path(sys.prefix) / "weights" / "smollm2-135m"
LIMIT_S = 400.0
BLOCKS = 24  # of 32 tokens: 736 tokens and the null block
FLAGS = (
    "--enforce-eager --block-size 32 --num-gpu-blocks-override 24 --max-model-len 512 "
    "--enable-prompt-tokens-details"
)


@contextmanager
def serving() -> Iterator[str]:
    """A server that answers, and its end."""
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", MODULE, "--model", str(MODEL), "--port", str(port), *FLAGS.split()],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env={
            **os.environ,
            "VLLM_CPU_KVCACHE_SPACE": "1",
            "OMP_NUM_THREADS": "1",
            "VLLM_CPU_OMP_THREADS_BIND": "nobind",
            "HF_HUB_OFFLINE": "1",
            "VLLM_NO_USAGE_STATS": "1",
        },
    )
    try:
        address = f"http://127.0.0.1:{port}"
        until = time.monotonic() + LIMIT_S
        while time.monotonic() < until and process.poll() is None:
            try:
                if httpx.get(f"{address}/health", timeout=2, trust_env=False).is_success:
                    break
            except httpx.HTTPError:
                time.sleep(1)
        else:
            raise AssertionError("The server did not start.")
        yield address
    finally:
        end(process)


@pytest.fixture(scope="module")
def answers() -> Iterator[list[kvplan.MeasureAnswer]]:
    """Prefixes one after the other, and then more at once than the pool can hold."""
    with serving() as address:
        yield [
            kvplan.measure(
                address, prompt=160, shared_prefix=128, output=8, concurrency="1", requests=4
            ),
            kvplan.measure(
                address, prompt=160, output=160, concurrency="4", requests=8, prefix="off"
            ),
        ]


def test_the_server_is_known(answers: list[kvplan.MeasureAnswer]) -> None:
    """Engine, version and pool are told by the server itself."""
    server = answers[0].experiment.server

    assert ("vllm", "0.32.0", 32) == (server.engine, (server.version or "")[:6], server.block_size)
    assert BLOCKS * 32 - 32 <= (server.pool_tokens or 0) <= BLOCKS * 32


def test_reused_tokens_are_the_servers_own(answers: list[kvplan.MeasureAnswer]) -> None:
    """Whole blocks of what was sent before, as the server counts them; cold is apart from warm."""
    runs = {(run.prefix, run.reuse): run for run in answers[0].runs}

    assert {} == answers[0].failures
    assert [run.server_cached_tokens for run in runs.values()] == [
        run.cached_tokens for run in runs.values()
    ]
    assert (0, 0) == (runs["unique", True].cached_tokens, runs["cold", True].cached_tokens)
    assert (4 * 128, 0) == (runs["warm", True].cached_tokens, runs["warm", False].cached_tokens)


def test_preemptions_are_provoked_and_counted(answers: list[kvplan.MeasureAnswer]) -> None:
    """Four of 320 tokens do not fit into 736: some are taken back, and all are answered."""
    run = answers[1].runs[0]

    assert (8, 0, 8 * 160) == (run.requests, run.failed, run.output_tokens)
    assert 0 < (run.preemptions or 0)
    assert 0.9 < (run.kv_usage_peak or 0)
