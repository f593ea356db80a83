"""Defaults by device against vLLM 0.32.0's EngineArgs on faked devices."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kvplan.engines.base import Asked, Node
from kvplan.engines.registry import engine_of
from kvplan.engines.vllm.plan import VllmPlan
from kvplan.readers.devices import find_device
from kvplan.readers.hf_config import read_config

FOLDER = Path(__file__).parents[2] / "reference" / "vllm_oracle"
DEVICES = {
    device: row
    for line in (FOLDER / "gpu_defaults.jsonl").read_text(encoding="utf-8").splitlines()
    for device, row in json.loads(line).items()
}
USAGES = {"OPENAI_API_SERVER": "server", "LLM_CLASS": "offline"}
LLAMA = json.loads((FOLDER / "configs" / "llama-3.1-8b.json").read_text(encoding="utf-8"))


def planned(device_name: str, **flags: Any) -> VllmPlan:
    """A plan of Llama 3.1 8B on one device."""
    device, _ = find_device(device_name)
    engine = engine_of("vllm")
    named = {f"--{key.replace('_', '-')}": value for key, value in flags.items()}
    asked = Asked(context=8192, flags=engine.flags.parse(named), pool_bytes=40 << 30)
    node = Node(device=device, gpus=1, memory_bytes=device.memory_bytes or 0)
    plan = engine.plan(read_config(LLAMA), node, asked)
    assert isinstance(plan, VllmPlan)
    return plan


@pytest.mark.parametrize("usage", USAGES)
@pytest.mark.parametrize("device", DEVICES)
def test_defaults_are_those_of_the_device(device: str, usage: str) -> None:
    """Tokens and sequences of a step, tokens in flight, the share of the card, the block."""
    theirs = DEVICES[device][usage]
    expected = {key: theirs[key] for key in ("mbt", "mns", "inflight", "util", "bs")}

    plan = planned(device, usage_context=USAGES[usage])
    settings = plan.settings

    assert expected == {
        "mbt": settings.batch,
        "mns": settings.max_seqs,
        "inflight": settings.in_flight,
        "util": settings.utilization,
        "bs": plan.pool.block_size,
    }


def test_a_driver_that_does_not_answer_counts_as_no_memory() -> None:
    """GB10 has 120 GiB and gets the batch of a small card."""
    settings = planned("gb10").settings

    assert (settings.batch, settings.max_seqs) == (2048, 256)


def test_the_cpu_takes_larger_blocks_and_plans_one_step_at_once() -> None:
    """CPU_ATTN prefers 128; async scheduling is off there."""
    plan = planned("h100-sxm-80gb", device="cpu")

    assert plan.pool.block_size == 128
    assert plan.settings.in_flight == plan.settings.batch == 2048
    assert plan.prints[-1].startswith("CPU KV cache size: ")
