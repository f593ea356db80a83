"""The rule of whole prompts and the scheduler that decides step by step say the same."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import kvplan
from kvplan.simulation.paged.request import Request
from kvplan.simulation.paged.scheduler import Scheduler
from kvplan.simulation.paged.settings import CacheGroup, PagedSettings
from kvplan.simulation.prefix.vllm_pool import vllm_hits
from kvplan.simulation.prompts.blocks import BlockIds

PROMPTS = st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=60), min_size=1, max_size=10)


def scheduled_hits(
    prompts: list[list[int]], block: int, budget: int, num_blocks: int = 10_000
) -> list[int]:
    """Tokens that each prompt hits when it is sent after the one before has been answered."""
    scheduler = Scheduler(
        PagedSettings(
            num_blocks=num_blocks,
            groups=(CacheGroup(kind="full", block_size=block),),
            max_num_seqs=4,
            max_num_batched_tokens=budget,
            max_model_len=1000,
        )
    )
    found = []
    for number, prompt in enumerate(prompts):
        names = tuple(prompt)

        def key(tokens: int, names: tuple[int, ...] = names, number: int = number) -> object:
            # An answer's token is nobody else's.
            return (names[:tokens], number if tokens > len(names) else -1)

        scheduler.add(Request(number=number, num_prompt=len(prompt), num_output=1, keys=key))  # type: ignore[arg-type]
        while not scheduler.is_idle:
            step = scheduler.step()
            found += list(scheduler.hits.values())
            scheduler.settle(step, {r for r in step if r.num_computed >= r.num_tokens})
    return found


@settings(deadline=None)
@given(PROMPTS, st.sampled_from([1, 2, 4, 16]), st.sampled_from([7, 64]))
def test_hits_are_the_schedulers(prompts: list[list[int]], block: int, budget: int) -> None:
    """In a pool without end, whatever the chunks in which prompts are computed."""
    answer = kvplan.prefix(prompts, engine="vllm", block_size=block)

    assert scheduled_hits(prompts, block, budget) == list(answer.reused)


@settings(deadline=None)
@given(PROMPTS, st.sampled_from([1, 2, 4, 16]), st.sampled_from([7, 64]), st.integers(2, 60))
def test_a_given_pool_is_the_schedulers(
    prompts: list[list[int]], block: int, budget: int, num_blocks: int
) -> None:
    """Hit for hit, in a pool that forgets; a prompt that is longer than it hits nothing."""
    fitting = [row for row in prompts if -(-len(row) // block) < num_blocks]
    ids = BlockIds(block)
    rows = [ids.of(np.array(row)) for row in fitting]
    hits = [*vllm_hits(rows, [len(row) for row in fitting], block, num_blocks)]

    assert scheduled_hits(fitting, block, budget, num_blocks) == [block * one for one in hits]


def test_a_prompt_that_is_longer_than_the_pool() -> None:
    """Is refused, and takes nothing from those that fit."""
    rows = [[1, 2], [1, 2, 3, 4, 5], [1, 2, 9]]

    assert [0, 0, 2] == [*vllm_hits(rows, [32, 80, 48], 16, 5)]
