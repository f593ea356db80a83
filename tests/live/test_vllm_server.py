"""The real vLLM on the CPU with real weights: what kvplan predicts is what the server prints.

Run by ``make test-vllm``. One server at a time; each is asked for by the very command line that
``kvplan fit --from`` reads.
"""

from __future__ import annotations

import shlex
import sys
from functools import cache
from pathlib import Path

import pytest

import kvplan
from kvplan.core.units import GIB
from tests.live.vllm_server import Started, start

pytestmark = pytest.mark.vllm

WEIGHTS = Path(sys.prefix) / "weights"
SMOL, GEMMA = "smollm2-135m", "gemma-3-270m"
STARTS = {
    "default": (SMOL, "--max-model-len 2048"),
    "few blocks": (SMOL, "--block-size 32 --num-gpu-blocks-override 48 --max-model-len 1200"),
    "windows": (GEMMA, "--max-model-len 4096"),
    "windows, small steps": (GEMMA, "--max-num-batched-tokens 512 --block-size 64"),
}


@cache
def printed(name: str) -> Started:
    """What the server says of a pool of 1 GiB."""
    model, flags = STARTS[name]
    arguments = ["--enforce-eager", *shlex.split(flags)]
    return start(WEIGHTS / model, arguments, {"VLLM_CPU_KVCACHE_SPACE": "1"})


@pytest.mark.parametrize("name", STARTS)
def test_the_line_of_the_pool_is_equal(name: str) -> None:
    """Tokens and concurrency, character by character."""
    model, flags = STARTS[name]
    line = f"VLLM_CPU_KVCACHE_SPACE=1 vllm serve {WEIGHTS / model} --enforce-eager {flags}"
    plan = kvplan.fit(from_=line, gpu="cpu", gpu_memory="24GiB").plan

    assert (printed(name).line,) == plan.prints


@pytest.mark.parametrize("name", STARTS)
def test_the_log_is_explained(name: str) -> None:
    """The real log's tokens and concurrency are read back, and equal the prediction."""
    found = printed(name)
    answer = kvplan.explain(found.log.encode(), model=WEIGHTS / STARTS[name][0])
    start = answer.start

    assert ("vllm", []) == (start.engine, start.failures)
    assert f"KV cache size: {start.number('kv_tokens'):,} tokens" in found.line
    assert found.line.endswith(f": {start.number('max_concurrency'):.2f}x")


def test_the_pool_of_a_share_of_the_node() -> None:
    """Without a size the pool is the share less what the process holds, within the stated error."""
    found = start(
        WEIGHTS / SMOL,
        ["--enforce-eager", "--gpu-memory-utilization", "0.3", "--max-model-len", "2048"],
        {},
    )
    assert found.pool_gib is not None
    assert found.node_gib is not None
    plan = kvplan.fit(
        WEIGHTS / SMOL,
        gpu="cpu",
        gpu_memory=round(found.node_gib * GIB),
        gpu_memory_utilization=0.3,
        enforce_eager=True,
    ).plan
    *_, pool = plan.ledger

    assert abs(pool.num_bytes / GIB - found.pool_gib) <= pool.error_bytes / GIB + 0.02
