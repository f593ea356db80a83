"""GB and GiB, and the logs of two engines side by side."""

from __future__ import annotations

from typing import Any

import pytest

import kvplan
from kvplan.core.units import GIB
from kvplan.core.weights import EMBEDDING
from tests.questions.ask import pool, rank_token_bytes
from tests.questions.rows import printed, settled

QWEN = "Qwen/Qwen3-235B-A22B-FP8"
VLLM: dict[str, Any] = {"engine_version": "0.9.2", "gpus": 4}
SGLANG: dict[str, Any] = {"engine": "sglang", "engine_version": "0.4.9", "gpus": 4}


def _table_bytes() -> int:
    """One table of 248,320 × 5,120 in 16 bits."""
    weights = kvplan.size("Qwen/Qwen3.5-27B", offline=True).model.weights
    assert weights is not None
    return 2 * weights.of_role(EMBEDDING)


def _sglang_gib() -> float:
    return float(pool(QWEN, max_total_tokens=367404, **SGLANG)["bytes"] / GIB)


ANSWERS = {
    "p097.gib_each": lambda: _table_bytes() / GIB,
    "p097.gb_each": lambda: _table_bytes() / 1e9,
    "p098.sglang_gib": _sglang_gib,
    "p098.vllm_gib": lambda: pool(QWEN, kv_pool="8.11GiB", **VLLM)["bytes"] / GIB,
    "p098.ratio": lambda: (
        pool(QWEN, max_total_tokens=367404, **SGLANG)["kv_tokens"]
        / pool(QWEN, num_gpu_blocks_override=178880 // 16, **VLLM)["kv_tokens"]
    ),
    "p098.bytes_per_token_per_rank": lambda: rank_token_bytes(QWEN, kv_pool="8.11GiB", **VLLM),
}
EXCEPTIONS: dict[str, str] = {}


@pytest.mark.parametrize("figure", ANSWERS)
def test_settled_figure(figure: str) -> None:
    """The answer has the settled digits."""
    expected = settled()[figure]

    assert expected == printed(ANSWERS[figure](), expected)


def test_p097_the_claim_is_in_another_unit() -> None:
    """2.54 is a number of GB; two tables take 4.74 GiB, not 5.08."""
    assert "4.74" == f"{2 * _table_bytes() / GIB:.2f}"
    assert "2.54" != f"{_table_bytes() / GIB:.2f}"
