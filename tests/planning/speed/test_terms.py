"""The sum of a step, part by part, where it is more than a quotient."""

from __future__ import annotations

import pytest

from kvplan.planning.speed.bound import work_of
from kvplan.planning.speed.ideal import Ideal
from kvplan.planning.speed.rates import Rates
from kvplan.planning.speed.terms import linear_s
from tests.planning.speed.plans import plan

VLLM_DEALT = {"--enable-expert-parallel": True}
DEALT = {"--ep-size": 8}


def ideal(model: str, engine: str = "vllm", gpus: int = 8, **flags: object) -> Ideal:
    """The work of a plan on H200s."""
    work = work_of(plan(model, "h200", gpus, engine, **flags))
    assert work is not None
    return work.ideal


@pytest.mark.parametrize(
    ("model", "engine", "flags", "favoured"),
    [
        # whole experts on eight ranks
        ("Qwen/Qwen3-235B-A22B", "sglang", DEALT, 7 / 8),
        ("Qwen/Qwen3-235B-A22B", "tensorrt-llm", DEALT, 7 / 8),
        ("openai/gpt-oss-120b", "vllm", VLLM_DEALT, 7 / 8),
        # a part of each expert on every rank
        ("Qwen/Qwen3-235B-A22B", "sglang", {}, 0),
        # routers that are corrected until all experts are drawn alike
        ("deepseek-ai/DeepSeek-R1", "sglang", DEALT, 0),
        ("moonshotai/Kimi-K2.5", "vllm", VLLM_DEALT, 0),
        # no experts
        ("Qwen/Qwen3-32B", "vllm", {}, 0),
    ],
)
def test_which_experts_fall_unevenly(
    model: str, engine: str, flags: dict[str, object], favoured: float
) -> None:
    """Those that are dealt out whole by a router that nothing keeps even."""
    assert favoured == ideal(model, engine, **flags).favoured


def test_a_step_waits_for_the_fullest_rank() -> None:
    """Experts take so much longer, and nothing else does; a bound does not know of it."""
    dealt = ideal("Qwen/Qwen3-235B-A22B", "sglang", **DEALT)
    even, uneven = linear_s(dealt, Rates(), 64), linear_s(dealt, Rates(uneven=0.8), 64)
    experts = even - linear_s(dealt._replace(experts_read_s=0.0, experts_token_s=0.0), Rates(), 64)

    assert uneven - even == pytest.approx(0.8 * 7 / 8 * experts)


@pytest.mark.parametrize("tokens", [1, 64, 8192])
def test_small_kernels_hide_what_they_move(tokens: int) -> None:
    """A norm takes its start or its bytes, whichever is longer; the first is in a step's fixed part
    already.
    """
    dense = ideal("Qwen/Qwen3-32B", gpus=1)
    starts = dense.layers * 5e-5
    moved = tokens * dense.dense_moved_s
    more = linear_s(dense, Rates(layer_s=5e-5, passes=1.0), tokens) - linear_s(
        dense, Rates(), tokens
    )

    assert more == pytest.approx(max(0.0, moved - starts), abs=1e-12)
