"""SGLang's scheduler, by hand: prefills first, hits, chunks, retraction."""

from __future__ import annotations

from typing import Any

import pytest

from kvplan.simulation.servers.host import HostTier
from kvplan.simulation.servers.sglang import Ratio, SglangServer, SglangSettings
from tests.simulation.servers.cases import random_traffic, request, run, traffic


def server(tokens: int = 1000, **flags: Any) -> SglangServer:
    own = {name: flags.pop(name) for name in ("page", "eviction", "reuse", "host") if name in flags}
    return SglangServer(tokens=tokens, settings=SglangSettings(**flags), **own)


def test_prefills_come_before_decodes() -> None:
    """The second prompt is computed before the first goes on: a gap in its tokens.

    Steps of one second: 0 A's prompt, 1 B's prompt (it came meanwhile), 2 and 3 both decode.
    """
    outcome = run(traffic([(0.0, 10, 3), (0.5, 10, 2)]), server())

    assert [1.0, 2.0] == outcome.first_token_s.tolist()
    assert [4.0, 3.0] == outcome.finished_s.tolist()
    assert 4 == outcome.num_steps


def test_a_finished_prompt_and_its_answer_are_found() -> None:
    """The same prompt again hits all but its last token; one that goes on hits the answer too."""
    work = traffic(
        [(0.0, 8, 9), (20.0, 8, 1), (0.0, 24, 1)],
        ids=[[1, 2], [1, 2], [1, 2, 3, 4, 5, 6]],  # blocks 3 and 4 are the answer
        block=4,
        after=[-1, -1, 0],
    )
    outcome = run(work, server())

    # Of the answer's 9 tokens the last is never computed: 8 + 8 are kept.
    assert [0, 7, 16] == outcome.hit_tokens.tolist()


def test_pages_round_hits_down() -> None:
    """With pages of 4 the last page of a whole hit is computed again."""
    work = traffic([(0.0, 8, 1), (10.0, 8, 1)], ids=[[1, 2], [1, 2]], block=4)

    assert [0, 4] == run(work, server(page=4)).hit_tokens.tolist()


def test_equal_prompts_of_one_step_are_computed_twice_and_kept_once() -> None:
    """What was in the tree already is freed when the second enters it."""
    one = server()
    outcome = run(traffic([(0.0, 8, 1), (0.0, 8, 1)], ids=[[1, 2], [1, 2]], block=4), one)

    assert 16 == outcome.computed_tokens
    assert 8 == one.tree.total


def test_a_long_prompt_is_cut() -> None:
    """10 tokens in chunks of 4: three steps to the first token."""
    outcome = run(traffic([(0.0, 10, 1)]), server(chunk_tokens=4))

    assert [3.0] == outcome.first_token_s.tolist()


def test_admission_sets_answers_aside() -> None:
    """Need = 10 + 40 + 1 page for each: of 100 tokens the second has to wait.

    room after the first: 100 − 51 = 49 ≤ 51.
    """
    outcome = run(traffic([(0.0, 10, 40), (0.0, 10, 40)]), server(100))

    assert [0.0, 40.0] == outcome.admitted_s.tolist()


def test_running_requests_count_with_the_ratio() -> None:
    """One that runs sets 0.7 of its answer aside: 100 − 11 − 0.7 × 39 = 61.7 > 51."""
    outcome = run(traffic([(0.0, 10, 40), (0.5, 10, 40)]), server(100))

    assert [0.0, 1.0] == outcome.admitted_s.tolist()


def test_retraction_takes_the_one_with_the_fewest_tokens_out() -> None:
    """Both would need 100 of 90 tokens: the younger goes, and comes back when the elder is done."""
    one = server(90)
    one.ratio.now = one.ratio.first = one.ratio.least = 0.1
    outcome = run(traffic([(0.0, 10, 40), (0.5, 10, 40)]), one)

    assert [0, 1] == outcome.preemptions.tolist()
    # Both have 36 tokens out when 10 + 35 of each fill the pool. B's prompt is still in the tree:
    # the 36 tokens of its answer are computed again, when A has left.
    assert 36 == outcome.recomputed_tokens
    assert [41.0, 45.0] == outcome.finished_s.tolist()


def test_retraction_drops_the_longest_prompt_of_equals() -> None:
    """schedule_batch.py sorts by tokens out, then by the shorter prompt; the last goes."""
    one = server(61)
    one.ratio.now = one.ratio.first = one.ratio.least = 0.0
    outcome = run(traffic([(0.0, 12, 30), (0.5, 10, 30)]), one)

    assert [1, 0] == outcome.preemptions.tolist()


@pytest.mark.parametrize(("interval", "first_token"), [(1, 4.0), (10, 12.0)])
def test_new_requests_are_looked_for_every_so_many_decodes(
    interval: int, first_token: float
) -> None:
    """A's prompt is step 0; B comes in step 2. With 10 it is seen after ten decodes: at 11."""
    work = traffic([(0.0, 10, 40), (2.5, 10, 2)])

    assert first_token == run(work, server(recv_interval=interval)).first_token_s[1]


def test_the_ratio_decays_and_is_raised() -> None:
    """0.7 to a seventh of it in 600 steps; after a retraction from what the rest has out."""
    ratio = Ratio(1.0)
    for _ in range(700):
        ratio.decay()
    assert pytest.approx(0.7 * 0.14) == ratio.now

    left = [request(0, 10, 100), request(1, 10, 100)]
    left[0].generated = 30
    ratio.retracted(left)
    assert pytest.approx((30 + 2 * 20) / 201) == ratio.now


def test_host_memory_has_what_the_tree_has_forgotten() -> None:
    """Three prompts of 16 tokens in turn through a pool of 40, twice: all but the last token."""
    rows = [(10.0 * n, 16, 1) for n in range(6)]
    ids = [[100 * (n % 3) + m for m in range(4)] for n in range(6)]
    host = HostTier(capacity=1000, token_bytes=10.0, link_bytes_per_s=100.0)
    one = server(40, host=host)
    outcome = run(traffic(rows, ids, 4), one)

    assert 0 == run(traffic(rows, ids, 4), server(40)).hit_tokens.sum()
    assert [0, 0, 0, 15, 15, 15] == outcome.hit_tokens.tolist()
    # 15 tokens of 10 B at 100 B/s are 1.5 s, beside a step of a second.
    assert 1.5 == pytest.approx(outcome.finished_s[3] - outcome.admitted_s[3])


@pytest.mark.parametrize("policy", ["fcfs", "lpm", "lof", "shortest", "priority"])
@pytest.mark.parametrize(
    "flags",
    [
        {"tokens": 200},
        {"tokens": 200, "page": 4, "chunk_tokens": 16},
        {"tokens": 120, "chunk_tokens": 10, "eviction": "lfu", "max_running": 3},
        {"tokens": 130, "host": HostTier(capacity=90, token_bytes=1.0, link_bytes_per_s=1e3)},
        {"tokens": 120, "reuse": False, "recv_interval": 7},
    ],
)
def test_nothing_is_lost_under_any_traffic(policy: str, flags: dict[str, Any]) -> None:
    """Every token of the pool is in one place after every step, and everybody ends."""
    for seed in range(3):
        outcome = run(random_traffic(seed), server(policy=policy, **flags))
        ended = ~outcome.rejected
        assert (outcome.finished_s[ended] >= outcome.first_token_s[ended]).all()


def test_a_request_longer_than_the_pool_is_refused() -> None:
    outcome = run(traffic([(0.0, 300, 10), (0.0, 10, 2)]), server(200))

    assert [True, False] == outcome.rejected.tolist()


def test_the_ratio_begins_again_where_nothing_runs() -> None:
    """Scheduler.self_check_during_idle: what 50 decodes have let decay is back for the next."""
    one = server()
    run(traffic([(0.0, 10, 51)]), one)

    assert 0.7 == one.ratio.now
