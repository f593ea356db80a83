"""vLLM's own planning on a pretended H100, made again here and now: every figure is kvplan's.

Run by ``make test-vllm``; each model's class is built by vLLM itself, in a process of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import kvplan
from kvplan.core.units import GIB
from kvplan.readers import catalogue

pytestmark = pytest.mark.vllm

PLANNING = Path(__file__).with_name("vllm_planning.py")
# A model of the catalogue, the pool, and the engine's settings.
SAMPLE: list[tuple[str, int, dict[str, Any]]] = [
    ("llama-3.1-8b", 40 * GIB, {}),
    ("qwen3-0.6b", 10 * GIB + 12345, {"max_model_len": 5000, "block_size": 32}),
    ("mistral-7b-v0.1", 30 * GIB, {"max_num_batched_tokens": 2048}),
    ("gemma-3-270m", 4 * GIB, {"max_model_len": 8192}),
    ("gpt-oss-20b", 40 * GIB, {"max_num_batched_tokens": 4096}),
    ("olmo-3-7b", 40 * GIB, {"async_scheduling": False}),
    ("qwen3-30b-a3b", 12 * GIB, {"num_gpu_blocks_override": 5000}),
    ("deepseek-v3", 40 * GIB, {"max_model_len": 65536}),
    ("deepseek-v3.2", 40 * GIB, {}),
    ("qwen3-next-80b-a3b", 40 * GIB, {}),
    ("nvidia/NVIDIA-Nemotron-Nano-9B-v2", 40 * GIB, {"enable_prefix_caching": False}),
    ("falcon-h1-7b", 20 * GIB, {"max_model_len": 32768}),
    ("jamba-1.5-mini", 24 * GIB, {}),
]


def of_vllm(model: str, pool: int, asked: dict[str, Any], folder: Path) -> dict[str, Any]:
    """What vLLM's own code plans."""
    found = catalogue.find(model)
    assert found is not None
    (folder / "config.json").write_text(json.dumps(catalogue.config_of(found.entry)))
    done = subprocess.run(
        [sys.executable, str(PLANNING), str(folder), json.dumps({**asked, "available": pool})],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert not done.returncode, done.stderr[-2000:]
    plan: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return plan


@pytest.mark.parametrize(("model", "pool", "asked"), SAMPLE, ids=[row[0] for row in SAMPLE])
def test_every_figure_is_equal(
    model: str, pool: int, asked: dict[str, Any], tmp_path: Path
) -> None:
    """Blocks, bytes of a block, tokens, concurrency, and each group's blocks of a request."""
    found = kvplan.fit(model, gpu="h100-sxm-80gb", kv_pool=pool, **asked).plan.pool

    assert of_vllm(model, pool, asked, tmp_path) == {
        "num_blocks": found.num_blocks,
        "bytes_per_block": found.bytes_per_block,
        "kv_tokens": found.kv_tokens,
        "max_concurrency": found.max_concurrency,
        "block_sizes": sorted(group.block_size for group in found.groups),
        "blocks_per_sequence": sorted(group.blocks_per_sequence for group in found.groups),
    }
