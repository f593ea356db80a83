"""How prompts go between decode steps, as an engine's flags say."""

from __future__ import annotations

from typing import Any

import pytest

from kvplan.planning.speed import estimate
from kvplan.planning.speed.batching import budget_of, is_apart
from tests.planning.speed.plans import plan

SGLANG: dict[str, Any] = {"engine": "sglang"}
MIXED = {"--enable-mixed-chunk": True}


@pytest.mark.parametrize(
    ("asked", "apart"),
    [
        ({"engine": "vllm"}, False),
        ({"engine": "vllm", "engine_version": "0.7.3"}, True),
        ({"engine": "none"}, True),
        (SGLANG, True),
        (SGLANG | MIXED, False),
        # scheduler.py: is_mixed_chunk; server_args.py: not beside drafts, nor with these kernels.
        (SGLANG | MIXED | {"--chunked-prefill-size": "-1"}, True),
        (SGLANG | MIXED | {"--speculative-algorithm": "NGRAM"}, True),
        (SGLANG | MIXED | {"--attention-backend": "dual_chunk_flash_attn"}, True),
    ],
)
def test_prompts_go_apart_where_the_engine_does_not_mix(
    asked: dict[str, Any], *, apart: bool
) -> None:
    found = plan("llama-3.1-8b", **asked)

    assert apart == is_apart(found)


@pytest.mark.parametrize(
    ("flags", "tokens"),
    [
        ({}, 8192),
        ({"--chunked-prefill-size": "4096"}, 4096),
        ({"--max-prefill-tokens": "2048"}, 2048),
        ({"--max-prefill-tokens": "32768"}, 8192),
        # server_args.py: max_prefill_tokens is 16384 where nobody says.
        ({"--chunked-prefill-size": "32768"}, 16384),
        ({"--chunked-prefill-size": "32768", "--max-prefill-tokens": "32768"}, 32768),
        ({"--chunked-prefill-size": "-1"}, 16384),
    ],
)
def test_a_step_of_sglang_takes_the_lesser_of_two_flags(flags: dict[str, str], tokens: int) -> None:
    assert tokens == budget_of(plan("llama-3.1-8b", engine="sglang", **flags))


def test_other_engines_have_no_such_limit() -> None:
    found = plan("llama-3.1-8b", **{"--max-num-batched-tokens": "32768"})

    assert 32768 == budget_of(found)


def test_mixed_prompts_come_sooner_between_more_tokens() -> None:
    """Clients with equal lengths no longer move in waves: none waits for the others' prompts."""
    seen = {}
    for flags in ({}, MIXED):
        found = estimate(plan("llama-3.1-8b", **SGLANG, **flags))
        assert found is not None
        seen[found.batching.apart] = found.closed_loop(
            prompt=2000, output=200, clients=64, capacity=256
        )

    assert seen[False].ttft_s < seen[True].ttft_s
    assert seen[False].tpot_s > seen[True].tpot_s
