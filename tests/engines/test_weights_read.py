"""The least of a rank's weights that a decode step reads: no table, a token's experts."""

from __future__ import annotations

from typing import Any

import pytest

import kvplan

ENGINES = ("vllm", "sglang", "tensorrt-llm", "llama.cpp", "transformers")
LLAMA_TABLE = 128_256 * 4_096 * 2

# 48 layers of 128 experts, 8 drawn: 3 × 2,048 × 768 each; what is left is read whole.
MIXTURE_IDLE = 48 * 120 * 3 * 2_048 * 768 * 2
MIXTURE_TABLE = 151_936 * 2_048 * 2


def _read(model: str, engine: str, **asked: Any) -> int:
    answer = kvplan.fit(model, gpu="h200", engine=engine, context=4096, **asked)
    return answer.plan.weights_read_bytes


@pytest.mark.parametrize("engine", ENGINES)
def test_a_table_is_not_read(engine: str) -> None:
    """Of an embedding a token takes a row: 8,030,261,248 parameters less one table."""
    expected = 8_030_261_248 * 2 - LLAMA_TABLE

    assert expected == pytest.approx(_read("llama-3.1-8b", engine), rel=2e-4)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_tied_table_is_the_head(engine: str) -> None:
    """Qwen3 4B has one table, and the head reads all of it."""
    assert 4_022_468_096 * 2 == pytest.approx(_read("Qwen/Qwen3-4B", engine), rel=2e-4)


@pytest.mark.parametrize("engine", ENGINES)
def test_one_token_draws_some_experts(engine: str) -> None:
    """Other tokens of the batch may draw the same eight."""
    whole = kvplan.size("qwen3-30b-a3b").model.weights
    assert whole is not None
    expected = whole.num_bytes - MIXTURE_TABLE - MIXTURE_IDLE

    assert expected == pytest.approx(_read("qwen3-30b-a3b", engine), rel=5e-3)


def test_plain_arithmetic_counts_every_tensor() -> None:
    """Without an engine all that is stored counts, as the ledger has it."""
    assert 8_030_261_248 * 2 == _read("llama-3.1-8b", "none")


def test_a_rank_reads_its_part() -> None:
    """Two ranks read a half each; norms are on both."""
    assert 2 * _read("llama-3.1-8b", "vllm", gpus=2) == pytest.approx(
        _read("llama-3.1-8b", "vllm"), rel=1e-3
    )
