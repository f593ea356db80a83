"""What the profile run takes, and where graphs are counted."""

from __future__ import annotations

import re
from typing import Any

import pytest

from kvplan.core.units import GIB, MIB
from kvplan.engines.vllm.prints import graph_lines
from tests.questions.ask import fit, pool, token_bytes
from tests.questions.rows import printed, settled

MIXTURE: dict[str, Any] = {"engine_version": "0.10.2", "kv_cache_dtype": "fp8"}
YI: dict[str, Any] = {"gpus": 4, "gpu_memory": "24564MiB", "engine_version": "0.6"}
MINIMAX: dict[str, Any] = {"max_model_len": 2304, "engine_version": "0.21.0"}


def _budget_mib() -> float:
    """What the fraction asks of a card: all terms inside it."""
    ledger = fit("01-ai/Yi-1.5-34B-Chat", **YI).to_dict()["ledger"]
    return float(sum(row["bytes"] for row in ledger if row["inside_budget"]) / MIB)


def _share() -> float:
    """Between the fractions that the line converts, for 0.36 GiB of 23.7."""
    line = graph_lines(int(0.36 * GIB), int(23.7 * GIB), 0.82)[0]
    fractions = [float(text) for text in re.findall(r"=(0\.\d+)", line)]
    return fractions[0] - fractions[1]


def _minimax(blocks: int) -> dict[str, Any]:
    return pool("MiniMaxAI/MiniMax-M2.5", num_gpu_blocks_override=blocks, **MINIMAX)


ANSWERS = {
    "p013.bytes_per_token_fp8": lambda: token_bytes("qwen3-30b-a3b", kv_dtype="fp8"),
    # 10.55 GiB with two decimals: the blocks that are within it and give the printed tokens.
    "p013.tokens_at_10_55": lambda: pool(
        "qwen3-30b-a3b", kv_pool=int(10.553 * GIB), max_model_len=100000, **MIXTURE
    )["kv_tokens"],
    "p015.budget_mib": _budget_mib,
    "p017.delta": _share,
    "p018.ratio": lambda: _minimax(48118)["kv_tokens"] / _minimax(15365)["kv_tokens"],
    "p018.implied_max_model_len": lambda: (
        _minimax(15365)["kv_tokens"] / _minimax(15365)["max_concurrency"]
    ),
}
EXCEPTIONS = {
    "p013.activation_growth_gib": "10.55 − 5.59 are two logs' figures; neither states the batch "
    "that was profiled (that a batch as long as the model takes it is tested)",
    "p015.graph_mib": "a difference of two readings of nvidia-smi; the plan has 1,118 ± 567 MiB, "
    "outside the budget",
    "p017.total_gib": "an input: the card's total of the log",
}


@pytest.mark.parametrize("figure", ANSWERS)
def test_settled_figure(figure: str) -> None:
    """The answer has the settled digits."""
    expected = settled()[figure]

    assert expected == printed(ANSWERS[figure](), expected)


def test_p013_a_longer_batch_shrinks_the_pool() -> None:
    """The pool loses to activations, not to another type of cache."""
    ledgers = [
        {row["name"]: row["bytes"] for row in answer.to_dict()["ledger"]}
        for answer in (
            fit("qwen3-30b-a3b", gpu="h100-sxm-80gb", max_num_batched_tokens=batch, **MIXTURE)
            for batch in (100_000, 221_000)
        )
    ]
    grown = ledgers[1]["activation_peak"] - ledgers[0]["activation_peak"]

    assert grown > 4.96 * GIB
    assert grown == ledgers[0]["kv_pool"] - ledgers[1]["kv_pool"]


@pytest.mark.parametrize(
    ("version", "inside"), [("0.6", False), ("0.19.0", False), ("0.21.0", True)]
)
def test_p015_where_graphs_are_counted(version: str, inside: bool) -> None:
    """Captured on top of the fraction until they were estimated first."""
    ledger = fit("01-ai/Yi-1.5-34B-Chat", **{**YI, "engine_version": version}).to_dict()["ledger"]

    assert [inside] == [row["inside_budget"] for row in ledger if row["name"] == "cuda_graphs"]


def test_p017_the_line_of_the_log() -> None:
    """0.82 is 0.8048 without the estimate, and 0.8352 keeps the pool."""
    lines = " ".join(graph_lines(int(0.36 * GIB), int(23.7 * GIB), 0.82))

    assert ["0.8200", "0.8048", "0.8352"] == re.findall(r"0\.\d{4}", lines)


def test_p018_concurrency_of_both_logs() -> None:
    """106.7 and 334.2 requests of 2,304 tokens."""
    assert (106.7, 334.2) == tuple(
        round(_minimax(blocks)["max_concurrency"], 1) for blocks in (15365, 48118)
    )
