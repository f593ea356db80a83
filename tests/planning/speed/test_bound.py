"""The bound: bytes and operations of a step, per kind of layer and layout."""

from __future__ import annotations

from typing import Any

import pytest

from kvplan.core.step import Chunk, StepCost
from kvplan.engines.base import EnginePlan
from kvplan.planning.speed import bound, estimate, speed_bound
from kvplan.planning.speed.shape import Shape
from tests.planning.speed.plans import plan, work

H100 = 3_350_000_000_000
FP8 = 1_979_000_000_000_000


def cost(asked: EnginePlan) -> StepCost:
    found = bound(asked)
    assert found is not None
    return found


def shape(asked: EnginePlan) -> Shape:
    return work(asked).shape


@pytest.mark.parametrize(
    ("engine", "flags", "parts"),
    [
        ("llama.cpp", {}, 1),
        ("llama.cpp", {"--split-mode": "row"}, 2),
        ("vllm", {}, 2),
        ("vllm", {"--pipeline-parallel-size": 2, "--tensor-parallel-size": 1}, 2),
    ],
)
def test_a_token_waits_for_all_cards_that_take_turns(
    engine: str, flags: dict[str, Any], parts: int
) -> None:
    """Two cards: all weights and the whole cache, or about half where both read at once."""
    one, two = (
        plan("Qwen/Qwen3-8B", "h100", n, engine, **(flags if n > 1 else {})) for n in (1, 2)
    )
    alone, found = speed_bound(one, H100, 1), speed_bound(two, H100, 1)
    assert alone is not None
    assert found is not None

    assert found.weights_read_s == pytest.approx(alone.weights_read_s / parts, rel=0.15)
    assert found.cache_read_s == pytest.approx(alone.cache_read_s / parts, rel=0.1)


@pytest.mark.parametrize(
    ("model", "gpu", "gpus", "engine"),
    [
        ("meta-llama/Llama-3.1-8B", "h100", 1, "vllm"),
        ("Qwen/Qwen3-32B", "h200", 2, "sglang"),
        ("Qwen/Qwen3-235B-A22B-FP8", "h200", 4, "vllm"),
        ("deepseek-ai/DeepSeek-R1", "h200", 8, "sglang"),
        ("deepseek-ai/DeepSeek-V3.2", "h200", 8, "vllm"),
        ("google/gemma-3-27b-it", "h100", 1, "vllm"),
        ("openai/gpt-oss-120b", "h200", 1, "tensorrt-llm"),
        ("state-spaces/mamba2-2.7b", "a100", 1, "vllm"),
    ],
)
def test_one_token_reads_what_the_engine_says(model: str, gpu: str, gpus: int, engine: str) -> None:
    """Weights of a step of one token are the plan's own bytes, whatever the engine and layout."""
    asked = plan(model, gpu, gpus, engine)

    assert pytest.approx(asked.weights_read_bytes, rel=0.03) == shape(asked).read_bytes


@pytest.mark.parametrize(
    ("model", "engine", "flags"),
    [
        ("Qwen/Qwen3-32B", "vllm", {}),
        ("Qwen/Qwen3-32B", "vllm", {"--kv-cache-dtype": "fp8"}),
        ("Qwen/Qwen3-32B", "sglang", {"--kv-cache-dtype": "fp8_e5m2"}),
        ("google/gemma-3-27b-it", "vllm", {}),
        (
            "meta-llama/Llama-3.1-8B",
            "llama.cpp",
            {"--cache-type-k": "q8_0", "--cache-type-v": "q8_0", "--flash-attn": "on"},
        ),
        ("deepseek-ai/DeepSeek-V2-Lite", "vllm", {}),
    ],
)
def test_the_cache_is_read_as_its_layers_keep_it(
    model: str, engine: str, flags: dict[str, Any]
) -> None:
    """Windows stop, formats shrink: what a sequence reads is what the plan counts."""
    asked = plan(model, "h200", 1, engine, context=16384, **flags)
    memory = 4_800_000_000_000
    longer = cost(asked).decode_s(1, 16384) - cost(asked).decode_s(1, 1)

    assert pytest.approx(asked.read_bytes(16384, 1) / memory, rel=0.03) == longer


def test_experts_are_drawn_by_the_batch() -> None:
    """E(1 − (1 − k/E)ᵀ) experts: 8 of 128 for a token, 64% of them for 16, all for 128."""
    found = cost(plan("Qwen/Qwen3-235B-A22B-FP8", "h200", 4))
    rank = shape(plan("Qwen/Qwen3-235B-A22B-FP8", "h200", 4))
    assert rank.experts is not None
    all_s = rank.experts.matrices.num_bytes / 4_800_000_000_000
    dense_s = rank.dense.num_bytes / 4_800_000_000_000

    assert rank.experts.drawn_share == 8 / 128
    for tokens in (1, 16, 128):
        drawn = 1 - (1 - 8 / 128) ** tokens
        assert pytest.approx(dense_s + drawn * all_s, rel=0.1) == found.linear_s(tokens)


def test_a_prompt_is_bound_by_the_peak() -> None:
    """8,192 tokens take their operations over the dense peak of the type that they run in."""
    asked = plan("meta-llama/Llama-3.1-8B", "h100", **{"--quantization": "fp8"})
    rank = shape(asked)
    products = 2 * rank.dense.parameters * 8192 / FP8
    pairs = 8192 * 8193 / 2 * rank.looks[0].pair_flops / 989_000_000_000_000

    found = cost(asked).seconds((), (Chunk(0, 8192),))

    assert pytest.approx(products + pairs, rel=0.02) == found


def test_ranks_wait_for_each_other() -> None:
    """Two ranks read half each, and send their partial sums over the link: twice a layer."""
    one, two = (cost(plan("Qwen/Qwen3-32B", "h200", n)) for n in (1, 2))
    sent = 64 * 2 * 5120 * 2 / 450_000_000_000

    assert pytest.approx(one.linear_s(1) / 2 + sent, rel=0.02) == two.linear_s(1)


def test_a_stage_sees_its_part_of_a_batch() -> None:
    """A batch of 8 over two stages steps as two of 4 through the whole model, a hop between."""
    flags = {"--tensor-parallel-size": 1, "--pipeline-parallel-size": 2}
    one, two = (
        cost(plan("Qwen/Qwen3-32B", "h200")),
        cost(plan("Qwen/Qwen3-32B", "h200", 2, **flags)),
    )

    assert pytest.approx(one.linear_s(4), rel=0.01) == two.linear_s(8)
    assert pytest.approx(one.attention[0].read_s / 2) == two.attention[0].read_s


def test_states_are_read_and_written() -> None:
    """A recurrent layer's state costs twice its bytes a step, whatever the context."""
    asked = plan("state-spaces/mamba2-2.7b", "h100")
    found = cost(asked)

    assert found.decode_s(8, 100) == found.decode_s(8, 30_000)
    assert found.sequence_s > 2 * asked.sequence_bytes(1) / H100 * 0.9


def test_a_shared_prefix_is_read_once() -> None:
    """The bound of 64 sequences that share 16k of 17k tokens reads the 16k once."""
    alone = plan("Qwen/Qwen3-8B", "h100", context=17408)
    shared = plan("Qwen/Qwen3-8B", "h100", context=17408, shared_prefix=16384)
    first, second = (speed_bound(p, H100, 64) for p in (alone, shared))
    assert first is not None
    assert second is not None
    row = shape(alone).looks[0].num_bytes

    assert pytest.approx(first.cache_read_s - 63 * 16384 * row / H100) == second.cache_read_s


@pytest.mark.parametrize(
    ("model", "gpu", "gpus", "engine"),
    [
        ("meta-llama/Llama-3.1-8B", "h100", 1, "vllm"),
        ("deepseek-ai/DeepSeek-R1", "b200", 8, "sglang"),
        ("openai/gpt-oss-120b", "h200", 2, "tensorrt-llm"),
        ("Qwen/Qwen3-Next-80B-A3B-Instruct", "h200", 2, "vllm"),
        ("meta-llama/Llama-3.1-8B", "rtx-4090", 1, "llama.cpp"),
        ("Qwen/Qwen3-32B", "mi300x", 1, "vllm"),
    ],
)
def test_an_estimate_is_never_faster_than_the_bound(
    model: str, gpu: str, gpus: int, engine: str
) -> None:
    """At any batch, context and prompt, but for experts that an uneven router draws twice."""
    asked = plan(model, gpu, gpus, engine)
    guess = estimate(asked)
    assert guess is not None
    least = cost(asked)
    experts = shape(asked).experts

    for batch in (1, 7, 64, 500):
        for context in (100, 5000, 60_000):
            slack = least.linear_s(batch) if experts else 0
            assert guess.cost.decode_s(batch, context) + slack >= least.decode_s(batch, context)
    assert guess.cost.seconds((), (Chunk(0, 4000),)) >= least.seconds((), (Chunk(0, 4000),))
