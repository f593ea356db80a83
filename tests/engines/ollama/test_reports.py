"""Ollama's scheduler lines: its expectation in its first time, its caches in the second."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest

import kvplan
from kvplan.engines.ollama.eras import Era
from kvplan.engines.ollama.plan import OllamaPlan, shown
from tests.engines.aliases import CONFIGS, REPORTS

LINES = (REPORTS / "llamacpp.jsonl").read_text(encoding="utf-8").splitlines()
SAID = {row["id"]: row for row in map(json.loads, LINES)}


class Start(NamedTuple):
    """A report, the model that its figures fit, and what it was started with."""

    id: str
    config: str
    version: str
    memory: str
    flags: dict[str, Any]
    gpus: int = 1
    file: str = "Q4_K_M"
    gpu: str | None = None


STARTS = (
    Start(
        "llamacpp-0153", "deepseek-ai--DeepSeek-R1.json", "0.5.7", "23.6GiB", {"num_ctx": 2048}
    ),
    Start("llamacpp-0155", "maxtext--gemma-3-12b-it.json", "0.6.5", "11.4GiB", {"num_ctx": 8192}),
    Start(
        "llamacpp-0156", "meta-llama--Llama-3.1-70B-Instruct.json", "0.5.7", "22.3GiB",
        {"num_ctx": 64000}, 4, "Q8_0",
    ),
    Start(
        "llamacpp-0158", "deepseek-ai--DeepSeek-V2-Lite.json", "0.5.7", "16.3GiB",
        {"num_ctx": 8192, "OLLAMA_NUM_PARALLEL": 2}, 1, "Q8_0",
    ),
)  # fmt: skip


def plan_of(start: Start) -> OllamaPlan:
    flags = {"OLLAMA_NUM_PARALLEL": 1} | start.flags
    plan = kvplan.fit(
        CONFIGS / start.config,
        gpu_memory=start.memory,
        gpus=start.gpus,
        engine="ollama",
        engine_version=start.version,
        quantization=start.file,
        **flags,
    ).plan
    assert isinstance(plan, OllamaPlan)
    return plan


@pytest.mark.parametrize("start", STARTS, ids=lambda start: start.id)
def test_expectation_is_as_printed(start: Start) -> None:
    """The cache and both graphs, to the printed digit."""
    said, found = SAID[start.id]["ollama"], plan_of(start).estimate
    assert found is not None

    assert said["required_kv"] == shown(found.cache)
    assert said["graph_full"] == shown(found.graph.full)
    assert said["graph_partial"] == shown(found.graph.partial)


def test_layers_over_four_cards() -> None:
    """44 of 81 layers go to four cards of 22 GiB, 11 each; all together would be 127.4 GiB."""
    said, found = SAID["llamacpp-0156"]["ollama"], plan_of(STARTS[2]).estimate
    assert found is not None

    assert (11, 11, 11, 11) == found.layers
    assert said["required_full"] == shown(found.full)
    assert said["required_partial"] == shown(found.partial)


def test_metal_counts_the_full_graph_for_both() -> None:
    """A 70B model of 80 layers on an Apple card: 640 MiB of cache, 324 MiB of graph."""
    said = SAID["llamacpp-0157"]["ollama"]
    found = kvplan.fit(
        CONFIGS / "meta-llama--Llama-3.1-70B-Instruct.json",
        gpu="m4-max",
        gpu_memory="11GiB",
        engine="ollama",
        engine_version="0.5.7",
        num_ctx=2048,
        OLLAMA_NUM_PARALLEL=1,
        quantization="Q4_0",
    ).plan.estimate

    assert said["required_kv"] == shown(found.cache)
    assert said["graph_full"] == shown(found.graph.full)
    assert said["graph_partial"] == shown(max(found.allocations) and found.graph.partial)


def test_its_own_engine_keeps_a_longer_memory() -> None:
    """Gemma 4 26B at 32,768: 640 MiB of full layers, 25 × 36 MiB of windows of 4096 + 512."""
    plan = kvplan.fit(
        CONFIGS / "google--gemma-4-26B-A4B.json",
        gpu="rtx-4090",
        engine="ollama",
        engine_version="0.20",
        num_ctx=32768,
        OLLAMA_FLASH_ATTENTION=1,
        quantization="Q4_K_M",
    ).plan

    assert Era.MEASURE is plan.era
    assert SAID["llamacpp-0159"]["ollama"]["kv_cache"] == shown(plan.layout.caches.num_bytes)
    assert 'msg="kv cache" device=CUDA0 size="1.5 GiB"' in plan.prints


@pytest.mark.parametrize(
    ("version", "memory", "context"),
    [
        ("0.5.7", "24GiB", 2048),
        ("0.9", "24GiB", 4096),
        ("0.20", "24GiB", 32768),
        ("0.32", "80GiB", 131072),
        ("0.32", "16GiB", 4096),
    ],
)
def test_default_context(version: str, memory: str, context: int) -> None:
    """By release, then by the cards' memory; never more than was trained."""
    plan = kvplan.fit(
        "llama-3.1-8b",
        gpu_memory=memory,
        engine="ollama",
        engine_version=version,
        OLLAMA_NUM_PARALLEL=1,
        quantization="Q4_K_M",
        offline=True,
    ).plan

    assert context == plan.pool.slot_context


def test_automatic_slots_are_tried_from_four() -> None:
    """Four slots where all layers fit with them, else one."""
    answers = [
        kvplan.fit(
            "llama-3.1-8b",
            gpu_memory=memory,
            engine="ollama",
            engine_version="0.5.7",
            num_ctx=16384,
            quantization="Q4_K_M",
            offline=True,
        ).plan.pool.slots
        for memory in ("48GiB", "12GiB")
    ]

    assert [4, 1] == answers


def test_hybrids_have_one_slot() -> None:
    """Whatever OLLAMA_NUM_PARALLEL says."""
    plan = kvplan.fit(
        CONFIGS / "Qwen--Qwen3.5-9B.json",
        gpu="rtx-4090",
        engine="ollama",
        OLLAMA_NUM_PARALLEL=4,
        num_ctx=8192,
        quantization="Q4_K_M",
    ).plan

    assert 1 == plan.pool.slots
