"""llama.cpp's slots: who gets which, what it keeps, what happens when cells run out."""

from __future__ import annotations

from typing import Any

import pytest

from kvplan.simulation.servers.llamacpp import LlamaServer, LlamaSettings, reusable
from tests.simulation.servers.cases import random_traffic, request, run, traffic


def server(cells: int = 400, **flags: Any) -> LlamaServer:
    return LlamaServer(settings=LlamaSettings(cells=cells, **flags))


def slot_of(one: LlamaServer, ids: list[int]) -> int:
    """The slot that a prompt of these blocks of ten tokens would get."""
    slot = one.choose(request(99, 10 * len(ids), 5, ids=ids, block=10))
    assert slot is not None
    return slot.number


def test_a_slot_is_chosen_by_likeness_then_by_age() -> None:
    """Slot 3 is taken first, as all are equally old; then what is most like the prompt."""
    one = server()
    work = traffic(
        [(0.0, 20, 1), (10.0, 30, 1), (20.0, 30, 1)],
        ids=[[1, 2], [4, 5, 6], [7, 8, 9]],
        block=10,
    )
    run(work, one)

    assert [[1, 2], [4, 5, 6], [7, 8, 9], []] == [
        [segment.name for segment in one.slots[number].kept] for number in (3, 2, 1, 0)
    ]
    assert 2 == slot_of(one, [4, 5, 3])
    assert 3 == slot_of(one, [1])
    assert 0 == slot_of(one, [40, 41])  # nobody's: the one never used
    # A tenth of the prompt is not enough, it has to be more.
    assert 0 == slot_of(one, [4, *range(50, 59)])
    assert 2 == slot_of(one, [4, *range(50, 58)])


def test_a_slot_keeps_the_common_beginning_and_the_last_token_is_computed() -> None:
    """The same prompt again has all but one token; a prompt that parts has what is before."""
    work = traffic(
        [(0.0, 20, 1), (10.0, 20, 1), (20.0, 20, 1), (30.0, 20, 1)],
        ids=[[1, 2], [1, 2], [1, 3], [1, 2]],
        block=10,
    )

    # The third took the slot, so that the fourth has only what the third left of it.
    assert [0, 19, 10, 10] == run(work, server()).hit_tokens.tolist()


def test_a_task_without_a_slot_waits() -> None:
    """Two slots, three tasks of two tokens: the third begins when the first is done."""
    outcome = run(traffic([(0.0, 5, 2), (0.0, 5, 3), (0.0, 5, 1)]), server(slots=2))

    assert [0.0, 0.0, 2.0] == outcome.admitted_s.tolist()


def test_prompts_share_the_batch_with_decodes() -> None:
    """A batch of 8: one token of A and 7 of B's 14, then the rest."""
    outcome = run(traffic([(0.0, 5, 5), (0.5, 14, 1)]), server(batch_tokens=8))

    assert [5.0, 3.0] == outcome.finished_s.tolist()


def test_a_full_slot_ends_the_answer() -> None:
    """Without context shift: 20 cells, a prompt of 10 and no more than 10 tokens after it."""
    outcome = run(traffic([(0.0, 10, 50)]), server(20, slots=1))

    assert [10.0] == outcome.finished_s.tolist()


@pytest.mark.parametrize(("unified", "rejected"), [(True, False), (False, True)])
def test_slots_share_their_cells_or_have_their_own(unified: bool, rejected: bool) -> None:
    """40 cells in 4 slots: a prompt of 20 fits in one cache and in no quarter of it."""
    outcome = run(traffic([(0.0, 20, 2)]), server(40, unified=unified))

    assert [rejected] == outcome.rejected.tolist()


def test_idle_slots_are_emptied_for_those_that_run() -> None:
    """40 cells: what a finished conversation left goes when another needs it."""
    one = server(40)
    work = traffic([(0.0, 20, 1), (5.0, 30, 1)], ids=[[1, 2], [4, 5, 6]], block=10)
    run(work, one)

    assert 20 == one.counts.evicted_blocks


def test_without_cells_everybody_who_runs_fails() -> None:
    """Two conversations of 15 + 10 in 40 cells: 'Context size has been exceeded' for both."""
    outcome = run(traffic([(0.0, 15, 10), (0.0, 15, 10), (20.0, 15, 10)]), server(40))

    assert [True, True, False] == (outcome.finished_s != outcome.finished_s).tolist()
    assert not outcome.rejected.any()


def test_host_memory_keeps_what_a_slot_loses() -> None:
    """One slot, two conversations in turn: without host memory each starts from nothing."""
    rows = [(float(10 * n), 20, 1) for n in range(4)]
    work = traffic(rows, ids=[[1, 2], [3, 4], [1, 2], [3, 4]], block=10)
    memory = {"host_tokens": 100, "token_bytes": 10, "link_bytes_per_s": 100.0}
    one = server(slots=1, **memory)
    outcome = run(work, one)

    assert [0, 0, 0, 0] == run(work, server(slots=1)).hit_tokens.tolist()
    assert [0, 0, 19, 19] == outcome.hit_tokens.tolist()
    # The second saves 20 tokens, the third saves 20 and loads 20 of 10 B at 100 B/s.
    assert [1.0, 3.0, 5.0] == (outcome.finished_s - outcome.admitted_s)[:3].tolist()


@pytest.mark.parametrize("unified", [True, False])
@pytest.mark.parametrize("host_tokens", [0, 80])
def test_nothing_is_lost_under_any_traffic(unified: bool, host_tokens: int) -> None:
    """The cells add up after every step."""
    for seed in range(5):
        run(random_traffic(seed), server(400, unified=unified, host_tokens=host_tokens))


@pytest.mark.parametrize(
    ("cache", "prompt", "chunk", "expected"),
    [
        ("abcXYZdefgh", "abcdefgh", 3, [(6, 3, 5)]),
        ("abcXYZdefgh", "abcdefgh", 6, []),
        ("abcdef", "abcdef", 2, []),
        ("aaXbbbbYcccc", "aabbbbcccc", 2, [(3, 2, 4), (8, 6, 4)]),
    ],
)
def test_cache_reuse(
    cache: str, prompt: str, chunk: int, expected: list[tuple[int, int, int]]
) -> None:
    """Behind a part that was cut out the rest is moved, if it is long enough."""
    found = reusable([ord(c) for c in cache], [ord(c) for c in prompt], chunk)

    assert expected == found


@pytest.mark.parametrize(
    ("entry", "hit"),
    [([1, 2, 3, *range(20, 25)], 30), ([1, 2, 3, *range(20, 30)], 0)],
    ids=["three eighths of it", "less than a quarter of it"],
)
def test_host_memory_lends_what_keeps_a_quarter(entry: list[int], hit: int) -> None:
    """server_prompt_cache::load passes over an entry that would lose more than three quarters."""
    asked = [entry, [90, 91], [1, 2, 3, 4]]
    rows = [(10.0 * n, 10 * len(ids), 1) for n, ids in enumerate(asked)]
    one = server(slots=1, host_tokens=300)

    assert hit == run(traffic(rows, ids=asked, block=10), one).hit_tokens[-1]


def test_a_slot_chosen_by_age_is_saved_and_asks_host_memory() -> None:
    """It would keep half of its 20 tokens, no tenth of the prompt: the entry is better."""
    long = [1, *range(10, 29)]
    asked = [long, [1, 2], long]
    rows = [(10.0 * n, 10 * len(ids), 1) for n, ids in enumerate(asked)]
    one = server(slots=1, host_tokens=300)

    assert 199 == run(traffic(rows, ids=asked, block=10), one).hit_tokens[-1]
