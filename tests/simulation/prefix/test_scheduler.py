"""The rule of whole prompts and the scheduler that decides step by step say the same."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

import kvplan
from kvplan.simulation.paged.request import Request
from kvplan.simulation.paged.scheduler import Scheduler
from kvplan.simulation.paged.settings import CacheGroup, PagedSettings

PROMPTS = st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=60), min_size=1, max_size=10)


def scheduled_hits(prompts: list[list[int]], block: int, budget: int) -> list[int]:
    """Tokens that each prompt hits when it is sent after the one before has been answered."""
    scheduler = Scheduler(
        PagedSettings(
            num_blocks=10_000,
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
