"""SGLang's scheduler, by hand: prefills first, hits, chunks, retraction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kvplan.core.errors import BadQuestion
from kvplan.simulation.planned import Rules, planned
from kvplan.simulation.servers.base import Batch
from kvplan.simulation.servers.host import HostTier
from kvplan.simulation.servers.sglang import SglangServer, SglangSettings
from kvplan.simulation.servers.sglang_budget import Ratio
from tests.planning.speed.plans import plan
from tests.simulation.servers.cases import random_traffic, request, run, traffic


def noted(shapes: list[Any]) -> Callable[[Batch], float]:
    """Steps of a second, each written down as its contexts and its chunks."""

    def seconds(batch: Batch) -> float:
        shapes.append((list(batch.contexts), [tuple(chunk) for chunk in batch.chunks]))
        return 1.0

    return seconds


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
    """Need = 10 + 40 + 1 page for each: of 100 tokens the second has to wait for a step.

    Beside the first: 100 − 51 = 49 ≤ 51. Once that runs, 0.7 of its answer is set aside:
    90 − 0.7 × 39 = 62.7 > 51. The batch that was full is no longer the running one.
    """
    outcome = run(traffic([(0.0, 10, 40), (0.0, 10, 40)]), server(100))

    assert [0.0, 1.0] == outcome.admitted_s.tolist()


def test_a_full_batch_waits_for_the_decode_after_an_end() -> None:
    """A, B and C fill it. A is done at 3; the decode after that one takes A out, then D comes.

    A request that ends is in the running batch until the next decode (update_running_batch).
    """
    rows = [(0.0, 10, 3), (0.0, 10, 20), (0.0, 10, 20), (1.5, 10, 2)]
    outcome = run(traffic(rows), server(max_running=3))

    assert 3.0 == outcome.finished_s[0]
    assert 4.0 == outcome.admitted_s[3]


def test_a_batch_whose_prompts_were_all_of_it_is_full_no_longer() -> None:
    """Answers of one token never decode: the next of three comes in the step after each."""
    outcome = run(traffic([(0.0, 60, 1)] * 3), server(100))

    assert [0.0, 1.0, 2.0] == outcome.admitted_s.tolist()


def test_the_next_chunk_is_cut_to_the_room() -> None:
    """B's prompt of 60 in chunks of 20: the third is cut to what A's answer leaves.

    Of 100 tokens A has 10 and half of its 45 aside. B needs 60 + 1 + 1 of 67.5. After two chunks
    100 − 10 − 40 − 22.5 = 27.5 are room for 20. With a ratio of 0.75 meanwhile it is 16.25.
    """
    shapes: list[Any] = []
    one = server(100, chunk_tokens=20)
    one.ratio.now = 0.5

    def seconds(batch: Batch) -> float:
        one.ratio.now = 0.75 if len(shapes) >= 2 else one.ratio.now
        return noted(shapes)(batch)

    run(traffic([(0.0, 10, 46), (0.5, 60, 1)]), one, step_s=seconds)

    assert [[(0, 20)], [(20, 20)], [(40, 16)], [(56, 4)]] == [parts for _, parts in shapes[1:5]]


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


def test_a_prompt_rides_with_decodes() -> None:
    """With mixed chunks B's prompt and A's second token are one step, the third is both's.

    A has 10 + 1 tokens when it decodes, and in the tree what its prompt put there.
    """
    shapes: list[Any] = []
    work = traffic([(0.0, 10, 3), (0.5, 10, 2)])
    outcome = run(work, server(mixed_chunk=True), step_s=noted(shapes))

    assert [([], [(0, 10)]), ([11], [(0, 10)]), ([11, 12], [])] == shapes
    assert [1.0, 2.0] == outcome.first_token_s.tolist()
    assert [3.0, 3.0] == outcome.finished_s.tolist()


@pytest.mark.parametrize(("mixed", "chunks"), [(False, [8, 4]), (True, [6, 6])])
def test_decodes_take_from_the_chunk(*, mixed: bool, chunks: list[int]) -> None:
    """Two that run leave 6 of a chunk of 8 to a prompt of 12."""
    shapes: list[Any] = []
    work = traffic([(0.0, 2, 10), (0.0, 2, 10), (0.5, 12, 1)])
    run(work, server(chunk_tokens=8, mixed_chunk=mixed), step_s=noted(shapes))

    assert chunks == [new for _, parts in shapes[1:3] for _, new in parts]
    assert [2 * mixed] * 2 == [len(contexts) for contexts, _ in shapes[1:3]]


@pytest.mark.parametrize(("mixed", "steps"), [(False, [[4, 4]]), (True, [[4], [4]])])
def test_decodes_take_from_the_prefill_batch(*, mixed: bool, steps: list[list[int]]) -> None:
    """Of --max-prefill-tokens 10 four that run leave 6: a second prompt of 4 finds 2."""
    shapes: list[Any] = []
    work = traffic([(0.0, 2, 10)] * 4 + [(0.5, 4, 10)] * 2)
    run(work, server(prefill_tokens=10, mixed_chunk=mixed), step_s=noted(shapes))

    assert steps == [[new for _, new in parts] for _, parts in shapes[1 : 1 + len(steps)]]


def test_decodes_are_set_aside_at_admission() -> None:
    """20 + 10 + 1 tokens of 63 − 30 − 0: with one for the decode beside them there is no room."""
    work = traffic([(0.0, 30, 9), (0.5, 20, 11)])
    found = {}
    for mixed in (False, True):
        one = server(63, mixed_chunk=mixed)
        one.ratio.now = one.ratio.first = one.ratio.least = 0.0
        found[mixed] = run(work, one).admitted_s[1]

    assert {False: 1.0, True: 9.0} == found


def test_without_chunks_nothing_is_mixed() -> None:
    """scheduler.py: is_mixed_chunk needs a chunked_prefill_size."""
    shapes: list[Any] = []
    work = traffic([(0.0, 10, 3), (0.5, 10, 2)])
    run(work, server(chunk_tokens=None, mixed_chunk=True), step_s=noted(shapes))

    assert not any(contexts and chunks for contexts, chunks in shapes)


@pytest.mark.parametrize(
    ("flags", "found"),
    [
        ({}, (False, 16384)),
        ({"--enable-mixed-chunk": True}, (True, 16384)),
        ({"--enable-mixed-chunk": True, "--speculative-algorithm": "EAGLE"}, (False, 16384)),
        ({"--max-prefill-tokens": "4096"}, (False, 4096)),
    ],
)
def test_a_plan_says_whether_it_mixes(flags: dict[str, Any], found: tuple[bool, int]) -> None:
    one = planned(plan("llama-3.1-8b", engine="sglang", **flags), Rules()).make()

    assert isinstance(one, SglangServer)
    assert found == (one.settings.mixes, one.settings.prefill_tokens)


def test_a_mixed_step_retracts_nobody() -> None:
    """Five pages of 8: A and B stand at the end of theirs when C's prompt takes two of the three.

    Admission sets a token aside for each that runs, not a page: 9 + 3 + 8 < 24 − 2. The engine
    ends where the two want a page each (alloc_for_decode); with C's prompt alone, a later decode
    retracts.
    """
    work = traffic([(0.0, 7, 7), (0.5, 8, 3), (1.5, 9, 3)])

    def squeezed(*, mixed: bool) -> SglangServer:
        one = server(40, page=8, mixed_chunk=mixed)
        one.ratio.now = one.ratio.first = one.ratio.least = 0.0
        return one

    assert [1, 0, 0] == sorted(run(work, squeezed(mixed=False)).preemptions.tolist())[::-1]
    with pytest.raises(BadQuestion, match=r"SGLang ends here: 2 tokens .* 8 are free"):
        run(work, squeezed(mixed=True))


@pytest.mark.parametrize("policy", ["fcfs", "lpm", "lof", "shortest", "priority"])
@pytest.mark.parametrize(
    "flags",
    [
        {"tokens": 200},
        {"tokens": 200, "page": 4, "chunk_tokens": 16},
        {"tokens": 120, "chunk_tokens": 10, "eviction": "lfu", "max_running": 3},
        {"tokens": 130, "host": HostTier(capacity=90, token_bytes=1.0, link_bytes_per_s=1e3)},
        {"tokens": 120, "reuse": False, "recv_interval": 7},
        {"tokens": 200, "page": 4, "chunk_tokens": 16, "mixed_chunk": True},
        {"tokens": 120, "chunk_tokens": 10, "mixed_chunk": True},
    ],
)
def test_nothing_is_lost_under_any_traffic(policy: str, flags: dict[str, Any]) -> None:
    """Every token of the pool is in one place after every step, and everybody ends."""
    for seed in (0, 1, 2, 4, 6, 12):
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
