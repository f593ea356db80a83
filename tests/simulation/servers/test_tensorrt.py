"""TensorRT-LLM: who starts can finish."""

from __future__ import annotations

from typing import Any

import pytest

from kvplan.simulation.servers.tensorrt import TensorRTServer
from tests.simulation.servers.cases import random_traffic, run, traffic


def server(tokens: int = 400, **flags: Any) -> TensorRTServer:
    given = {"max_len": 200, "max_batch": 8, "batched_tokens": 100, "page": 4} | flags
    return TensorRTServer(tokens=tokens, **given)


def test_a_request_waits_until_its_whole_answer_has_room() -> None:
    """Each needs 10 + 30 = 40 tokens, the pool has 72: one after the other, and nobody gives way.

    When the first ends its blocks stay in the tree; the second takes what it needs of them.
    """
    outcome = run(traffic([(0.0, 10, 30), (0.0, 10, 30)]), server(72))

    assert [0.0, 30.0] == outcome.admitted_s.tolist()
    assert 0 == outcome.preemptions.sum()


def test_prompts_share_steps_with_decodes() -> None:
    outcome = run(traffic([(0.0, 10, 4), (0.5, 10, 2)]), server())

    assert [4.0, 3.0] == outcome.finished_s.tolist()


@pytest.mark.parametrize(
    ("chunked", "first_token"), [(False, [1.0, 2.0, 3.0]), (True, [1.0, 2.0, 2.0])]
)
def test_a_prompt_is_whole_in_a_step_unless_it_is_cut(
    chunked: bool, first_token: list[float]
) -> None:
    """Three of 60 tokens in steps of 100: one a step, or 60 + 40 and 20 + 60."""
    one = server(batched_tokens=100, chunked=chunked)
    outcome = run(traffic([(0.0, 60, 1)] * 3), one)

    assert first_token == outcome.first_token_s.tolist()


@pytest.mark.parametrize(
    ("wait", "first_token"), [({}, 4.0), ({"wait_steps": 5, "wait_share": 0.9}, 9.0)]
)
def test_prompts_can_be_held_back_until_they_are_more(
    wait: dict[str, Any], first_token: float
) -> None:
    """B comes in step 2 and waits five more, as 11 tokens are not 90 of 100."""
    work = traffic([(0.0, 10, 40), (2.5, 10, 2)])

    assert first_token == run(work, server(**wait)).first_token_s[1]


def test_enough_prompts_are_not_held_back() -> None:
    """A's token and 90 of B's are more than 90 of 100."""
    work = traffic([(0.0, 10, 40), (2.5, 90, 2)])

    assert 4.0 == run(work, server(wait_steps=5, wait_share=0.9)).first_token_s[1]


def test_blocks_are_reused() -> None:
    """The same 16 tokens again: all blocks but the one with the last token."""
    work = traffic([(0.0, 16, 1), (9.0, 16, 1)], ids=[[1, 2, 3, 4]] * 2, block=4)

    assert [0, 12] == run(work, server()).hit_tokens.tolist()


@pytest.mark.parametrize(
    ("prompt", "output"), [(150, 60), (10, 400), (101, 10)], ids=["length", "pool", "step"]
)
def test_what_never_fits_is_refused(prompt: int, output: int) -> None:
    assert [True] == run(traffic([(0.0, prompt, output)]), server()).rejected.tolist()


@pytest.mark.parametrize("chunked", [False, True])
def test_nobody_gives_way_under_any_traffic(chunked: bool) -> None:
    """Blocks add up after every step, and what was promised is always there."""
    for seed in range(5):
        outcome = run(random_traffic(seed), server(120, chunked=chunked, batched_tokens=64))
        assert 0 == outcome.preemptions.sum()
        assert (outcome.finished_s >= outcome.first_token_s).all()
