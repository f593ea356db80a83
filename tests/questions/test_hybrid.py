"""Windows and states: what the token figure means, and how many requests really fit."""

from __future__ import annotations

from typing import Any

import pytest

import kvplan
from kvplan.core.units import GIB
from tests.questions.ask import fit, pool, size_gib
from tests.questions.rows import printed, settled

OSS = "gpt-oss-20b"
# The printed block of 784 tokens is that of 48 value heads and 4 KV heads: the 27B's shapes.
DELTA: dict[str, Any] = {
    "max_model_len": 32768, "max_num_seqs": 16, "num_gpu_blocks_override": 1487,
}  # fmt: skip
KIMI: dict[str, Any] = {
    "gpus": 2, "max_model_len": 120000, "max_num_batched_tokens": 64000, "max_num_seqs": 8,
    "kv_pool": "2.2985GiB",
}  # fmt: skip
STATES = {"engine_version": "0.28.0", "max_num_batched_tokens": 8192}


def _worst_case_gib(batched: int) -> float:
    """32 requests of 8,192 with their prompts in flight, by the groups' blocks."""
    found = pool(OSS, max_model_len=8192, max_num_batched_tokens=batched, engine_version="0.11.2")
    blocks = sum(group["blocks_per_sequence"] for group in found["groups"])
    return float(32 * blocks * found["bytes_per_block"] / GIB)


def _true_tokens(model: str, length: int, **asked: Any) -> float:
    """The printed concurrency times the length."""
    return float(f"{pool(model, **asked)['max_concurrency']:.2f}") * length


def _state_row() -> dict[str, Any]:
    return next(
        row
        for row in kvplan.size("Qwen/Qwen3.5-0.8B", offline=True).to_dict()["layers"]
        if row["kind"] == "linear_attention"
    )


def _key_bytes() -> int:
    """Bytes of a token's keys in one attention layer."""
    rows = kvplan.size("Qwen/Qwen3.5-0.8B", offline=True).to_dict()["layers"]
    row = next(row for row in rows if row["kind"] == "full_attention")
    return int(row["kv_heads"] * row["key_dim"] * 2)


def _delta_state_bytes() -> int:
    """The delta rule's state without the convolution: 16 × 128 × 128 in float32."""
    convolution = 6144 * 4 * 2
    return int(_state_row()["fixed_bytes"]) - convolution


ANSWERS = {
    "p035.capped_gib": lambda: size_gib(OSS, context=8192, sequences=32),
    "p035.full_gib": lambda: (
        32
        * fit(OSS, max_model_len=8192, disable_hybrid_kv_cache_manager=True).plan.sequence_bytes(
            8192
        )
        / GIB
    ),
    "p035.vllm_worst_case_gib.batched_8192": lambda: _worst_case_gib(8192),
    "p035.vllm_worst_case_gib.batched_2048": lambda: _worst_case_gib(2048),
    "p037.true_tokens": lambda: _true_tokens(
        "Qwen/Qwen3.5-27B", 32768, engine_version="0.19.0", **DELTA
    ),
    "p037.ratio": lambda: (
        _true_tokens("Qwen/Qwen3.5-27B", 32768, engine_version="0.19.0", **DELTA)
        / pool("Qwen/Qwen3.5-27B", engine_version="0.19.0", **DELTA)["kv_tokens"]
    ),
    "p038.true_tokens": lambda: _true_tokens(
        "moonshotai/Kimi-Linear-48B-A3B-Instruct", 120000, engine_version="0.11.0", **KIMI
    ),
    "p038.ratio": lambda: (
        _true_tokens(
            "moonshotai/Kimi-Linear-48B-A3B-Instruct", 120000, engine_version="0.11.0", **KIMI
        )
        / pool("moonshotai/Kimi-Linear-48B-A3B-Instruct", engine_version="0.11.0", **KIMI)[
            "kv_tokens"
        ]
    ),
    "p043.blocks.rx7900": lambda: pool(
        "Qwen/Qwen3.8-27B", gpus=2, max_model_len=122633, kv_pool="3.86GiB", **STATES
    )["num_blocks"],
    "p045.state_bytes": _delta_state_bytes,
    "p045.k_bytes_per_token": _key_bytes,
    "p045.block": lambda: _delta_state_bytes() // _key_bytes(),
    "p047.kv_bound": lambda: pool(
        "Qwen/Qwen3.6-35B-A3B", engine="sglang", context_length=32768, max_total_tokens=1956160
    )["max_concurrency"],
}
EXCEPTIONS = {
    "p039.block_tokens": "the log's block of 7,808 tokens is no released planner's: 0.27.0 refuses "
    "the published config (its latent page divides no other), later ones align it to 2,176",
    "p039.fixed_cost_tokens": "follows from that block",
    "p039.max_requests": "follows from that block",
    "p040.fixed_over_slope_tokens": "a development build: released planners give the published "
    "config another cost, 5,219 tokens of fixed part, and blocks of 832",
    "p040.fp8_gain": "the same build; released planners give 1.78",
    "p041.slope_bytes": "release and --max-num-batched-tokens are not stated; 0.28 at 4,096 gives "
    "3,916 B and a fixed part of 3.36e9",
    "p041.fixed_bytes": "release and --max-num-batched-tokens are not stated",
    "p043.blocks.h100": "the weights that leave 46.4 GiB for 969 blocks are not named; that so "
    "many blocks bound the sequences is tested",
    "p047.actual": "how many slots the start had is not stated; the bound by the pool is",
}


@pytest.mark.parametrize("figure", ANSWERS)
def test_settled_figure(figure: str) -> None:
    """The answer has the settled digits."""
    expected = settled()[figure]

    assert expected == printed(ANSWERS[figure](), expected)


def test_p037_later_versions_print_the_product() -> None:
    """The same blocks: 290,864 tokens in 0.19, concurrency times length since."""
    before, after = (
        pool("Qwen/Qwen3.5-27B", engine_version=version, **DELTA)
        for version in ("0.19.0", "0.22.1")
    )

    assert (290_864, "33.04") == (before["kv_tokens"], f"{before['max_concurrency']:.2f}")
    assert int(1487 / 45 * 32768) == after["kv_tokens"]


def test_p038_the_printed_artefact() -> None:
    """The log's own figures: 75,840 tokens and 2.48."""
    found = pool("moonshotai/Kimi-Linear-48B-A3B-Instruct", engine_version="0.11.0", **KIMI)

    assert (75_840, "2.48") == (found["kv_tokens"], f"{found['max_concurrency']:.2f}")


def test_p043_states_bound_the_sequences() -> None:
    """1,024 sequences and 969 blocks: refused, with the number that starts."""
    answer = fit(
        "Qwen/Qwen3.8-27B", gpu="h200", engine_version="0.28.0", max_num_seqs=1024,
        num_gpu_blocks_override=969, max_model_len=32768,
    )  # fmt: skip

    assert not answer.fits
    assert "max_num_seqs (1024) exceeds available Mamba cache blocks (969)" in (answer.reason or "")
    assert "--max-num-seqs 969" in (answer.reason or "")
