"""The figures that the README and the docs quote, each out of the package's own functions."""

from __future__ import annotations

import pytest

import kvplan
from kvplan.core.units import GIB, MIB, parse_bytes

PER_TOKEN = [
    ("llama-3.1-8b", 131_072, 0),
    ("qwen3-0.6b", 114_688, 0),
    ("qwen3-32b", 262_144, 0),
    ("deepseek-v3", 70_272, 0),
    ("falcon-7b", 8_192, 0),
    ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", 6_144, 49_364_992),
]

LENGTHS = [
    ("llama-3.1-8b", 4_096, 1, 512 * MIB),
    ("llama-3.1-8b", 16_384, 1, 2 * GIB),
    ("llama-3.1-8b", 32_768, 1, 4 * GIB),
    ("llama-3.1-8b", 65_536, 1, 8 * GIB),
    ("llama-3.1-8b", 131_072, 1, 16 * GIB),
    ("llama-3.1-8b", 32_768, 16, 64 * GIB),
    ("llama-3.1-8b", 8_192, 64, 64 * GIB),
    ("qwen3-32b", 131_072, 1, 32 * GIB),
    ("deepseek-v4-flash", 5_000, 1, 40_901_120),
]


@pytest.mark.parametrize(("model", "per_token", "fixed"), PER_TOKEN)
def test_bytes_per_token_and_fixed(model: str, per_token: int, fixed: int) -> None:
    """A token and a conversation keep what the model's layers say."""
    answer = kvplan.size(model)

    assert (per_token, fixed) == (answer.bytes_per_token, answer.fixed_bytes)


@pytest.mark.parametrize(("model", "tokens", "sequences", "expected"), LENGTHS)
def test_bytes_at_a_length(model: str, tokens: int, sequences: int, expected: int) -> None:
    """So many sequences of so many tokens hold so many bytes."""
    answer = kvplan.size(model, context=tokens, sequences=sequences)

    assert expected == answer.to_dict()["contexts"][0]["bytes"]


def test_multi_head_is_four_times_the_grouped() -> None:
    """32 KV heads in place of 8 take 16 GiB at 32,768 tokens."""
    grouped = kvplan.size("llama-3.1-8b")
    multi_head = kvplan.size("llama-3.1-8b", set={"num_key_value_heads": 32})

    assert 16 * GIB == multi_head.bytes(32_768)
    assert multi_head.bytes_per_token == grouped.multi_head_bytes_per_token


def test_positions_with_and_without_a_cache() -> None:
    """8,000 prompt tokens and 200 answered: 1,600,000 prompt positions without, 8,000 with."""
    positions = kvplan.size("llama-3.1-8b", prompt=8_000, output=200).to_dict()["positions"]

    assert 1_600_000 == positions["prompt_visits_without_cache"]
    assert 8_000 == positions["prompt_visits_with_cache"]


def test_positions_of_a_shared_prefix() -> None:
    """Twenty requests share 12,000 tokens: 240,000 positions without reuse, 12,000 with."""
    answer = kvplan.size("llama-3.1-8b", requests=20, shared_prefix=12_000)
    positions = answer.to_dict()["positions"]

    assert 240_000 == positions["prefix_visits_without_reuse"]
    assert 12_000 == positions["prefix_visits_with_reuse"]


def test_positions_equal_a_measured_generation() -> None:
    """512 + 24 tokens processed 12,564 positions without a cache and 535 with one, measured."""
    positions = kvplan.size("llama-3.1-8b", prompt=512, output=24).positions

    assert (12_564, 535) == (positions.without_cache, positions.with_cache)


def test_h100_with_an_allowance() -> None:
    """81,559 MiB − 14.96 GiB − 8 GiB = 56.7 GiB: 14 sequences of 32,768."""
    answer = kvplan.fit(
        "llama-3.1-8b", engine="none", gpu="h100-sxm-80gb", allowance="8GiB", context="32k"
    )

    assert "14.96" == f"{answer.plan.ledger.terms[0].num_bytes / GIB:.2f}"
    assert "56.7" == f"{answer.plan.ledger.pool_bytes / GIB:.1f}"
    assert 14 == answer.sequences


@pytest.mark.parametrize(
    ("bandwidth", "step_ms", "rate"), [(None, "22.7", "44"), ("2000GB/s", "38.1", "26")]
)
def test_decode_step_by_bandwidth(bandwidth: str | None, step_ms: str, rate: str) -> None:
    """A step reads the weights and 14 caches of 4 GiB."""
    answer = kvplan.fit(
        "llama-3.1-8b",
        engine="none",
        gpu="h100-sxm-80gb",
        allowance="8GiB",
        context="32k",
        bandwidth=bandwidth,
    )

    assert answer.speed is not None
    assert step_ms == f"{answer.speed.step_s * 1e3:.1f}"
    assert rate == f"{answer.speed.tokens_per_s_per_sequence:.0f}"


def test_memory_without_a_name() -> None:
    """80 GiB − 14.96 − 4 holds 122 sequences of 4,096."""
    answer = kvplan.fit(
        "llama-3.1-8b", engine="none", gpu_memory="80GiB", allowance="4GiB", context=4096
    )

    assert 122 == answer.sequences


@pytest.mark.parametrize("engine", ["vllm", "sglang", "tensorrt-llm", "transformers"])
@pytest.mark.parametrize(("gpu", "memory"), [("h100-sxm-80gb", "64GiB"), ("h200", "96GiB")])
def test_a_card_with_another_memory_has_no_more(engine: str, gpu: str, memory: str) -> None:
    """What was seen of the card itself, torch's total too, holds no longer."""
    found = kvplan.fit("llama-3.1-8b", engine=engine, gpu=gpu, gpu_memory=memory, context="8k")
    parts = sum(row["bytes"] for row in found.to_dict()["ledger"])

    assert found.to_dict()["device"]["memory_bytes"] == parse_bytes(memory)
    assert 0.98 * parse_bytes(memory) < parts <= parse_bytes(memory)


def test_reading_forty_gib() -> None:
    """A 40 GiB cache at 3.35 TB/s is read in 12.8 ms."""
    answer = kvplan.fit(
        "llama-3.1-8b", engine="none", gpu="h100-sxm-80gb", context="32k", concurrency=10
    )

    assert answer.speed is not None
    assert "12.8" == f"{answer.speed.cache_read_s * 1e3:.1f}"


def test_a_pool_that_is_filled_to_the_byte() -> None:
    """64 GiB hold 32 times 2 GiB: a layer's own scales are no sequence's."""
    fp8 = kvplan.fit(
        "llama-3.1-8b", gpu="h100-sxm-80gb", engine="none", kv_pool="64GiB", context="32k",
        kv_dtype="fp8",
    )  # fmt: skip

    assert 32 == fp8.sequences
    assert 2 * GIB == kvplan.size("llama-3.1-8b", kv_dtype="fp8").bytes(32_768)
