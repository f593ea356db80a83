"""vLLM's scheduler in the loop: times, host memory, swapping, prefill apart."""

from __future__ import annotations

from typing import Any

import pytest

from kvplan.simulation.loop import Loop
from kvplan.simulation.paged.settings import CacheGroup, PagedSettings
from kvplan.simulation.router import RoundRobin
from kvplan.simulation.servers.base import Batch
from kvplan.simulation.servers.host import HostTier
from kvplan.simulation.servers.vllm import VllmServer, keys_of
from tests.simulation.servers.cases import a_second, random_traffic, request, run, traffic


def settings(blocks: int = 100, **flags: Any) -> PagedSettings:
    given = {"max_num_seqs": 8, "max_num_batched_tokens": 100, "max_model_len": 400} | flags
    group = CacheGroup(kind="full", block_size=4)
    return PagedSettings(num_blocks=blocks, groups=(group,), **given)


def host(tokens: int = 1000) -> HostTier:
    return HostTier(capacity=tokens, token_bytes=10.0, link_bytes_per_s=100.0)


def test_prompts_join_the_steps_of_those_that_decode() -> None:
    """Steps of one second: B's prompt is computed beside A's second token."""
    outcome = run(traffic([(0.0, 10, 4), (0.5, 10, 2)]), VllmServer(settings=settings()))

    assert [1.0, 2.0] == outcome.first_token_s.tolist()
    assert [4.0, 3.0] == outcome.finished_s.tolist()


def test_a_whole_hit_leaves_the_last_block() -> None:
    """8 tokens in blocks of 4: the second time one block is found."""
    work = traffic([(0.0, 8, 1), (10.0, 8, 1), (20.0, 10, 1)], ids=[[1, 2]] * 3, block=4)

    assert [0, 4, 8] == run(work, VllmServer(settings=settings())).hit_tokens.tolist()


@pytest.mark.parametrize(
    ("tokens", "key"),
    [(4, (7, 4)), (8, (8, 4)), (10, (9, 2)), (12, ("own", 0, 12))],
)
def test_a_block_is_found_by_the_id_that_names_it(tokens: int, key: tuple[object, ...]) -> None:
    """The prompt's last id goes as far as the prompt; what is answered is the request's own."""
    assert key == keys_of(request(0, 10, 5, ids=[7, 8, 9], block=4))(tokens)


def test_ids_may_name_more_than_a_block() -> None:
    """512 tokens a name and 16 a block: the block is the name and its place under it."""
    keys = keys_of(request(0, 1024, 5, ids=[7, 8], block=512))

    assert [(7, 16), (7, 512), (8, 16)] == [keys(16), keys(512), keys(528)]


def test_preemption_recomputes_or_swaps() -> None:
    """9 blocks of 4 for two requests of 6 + 18 tokens: the newer gives way, at 10 B a token."""
    work = traffic([(0.0, 6, 18), (0.0, 6, 18)])
    outcomes = {}
    for way in ("recompute", "swap"):
        server = VllmServer(
            settings=settings(10, preemption=way), block_bytes=40, link_bytes_per_s=100.0
        )
        outcomes[way] = run(work, server), server
    recompute, swap = outcomes["recompute"][0], outcomes["swap"][0]

    assert [0, 1] == recompute.preemptions.tolist() == swap.preemptions.tolist()
    assert recompute.recomputed_tokens > 0 == swap.recomputed_tokens
    # The newer had 4 blocks: out and in again at 0.4 s a block.
    assert pytest.approx(2 * 4 * 0.4) == outcomes["swap"][1].counts.moved_s


def test_host_memory_has_what_the_pool_has_forgotten() -> None:
    """Three prompts of 16 of 20 tokens in turn through 8 usable blocks, twice."""
    rows = [(10.0 * n, 16, 1) for n in range(6)]
    ids = [[100 * (n % 3) + m for m in range(4)] for n in range(6)]
    work = traffic(rows, ids, 4)
    alone, tiered = VllmServer(settings=settings(9)), VllmServer(settings=settings(9), host=host())
    without, with_host = run(work, alone), run(work, tiered)

    assert 0 == without.hit_tokens.sum()
    assert [0, 0, 0, 12, 12, 12] == with_host.hit_tokens.tolist()
    assert 36 == tiered.counts.host_hit_tokens
    # 12 tokens of 10 B at 100 B/s are 1.2 s, beside a step of a second.
    assert 1.2 == pytest.approx(with_host.finished_s[3] - with_host.admitted_s[3])


def test_host_memory_forgets_the_oldest() -> None:
    """Room for one prompt's blocks: of three in turn none is there when it comes again."""
    rows = [(10.0 * n, 16, 1) for n in range(6)]
    ids = [[100 * (n % 3) + m for m in range(4)] for n in range(6)]
    server = VllmServer(settings=settings(9), host=host(16))

    assert 0 == run(traffic(rows, ids, 4), server).hit_tokens.sum()


@pytest.mark.parametrize("policy", ["fcfs", "shortest", "priority"])
@pytest.mark.parametrize("preemption", ["recompute", "swap"])
def test_nothing_is_lost_under_any_traffic(policy: str, preemption: str) -> None:
    """Blocks and queues add up after every step, and everybody ends."""
    for seed in range(3):
        server = VllmServer(
            settings=settings(30, policy=policy, preemption=preemption),
            block_bytes=40,
            link_bytes_per_s=1e4,
            host=host() if seed else None,
        )
        outcome = run(random_traffic(seed), server)
        assert (outcome.finished_s >= outcome.first_token_s).all()


def test_the_important_go_first() -> None:
    """One at a time: by what they say, or by how short they are."""
    work = traffic([(0.0, 30, 1), (0.0, 20, 1), (0.0, 10, 1)], priority=[2, 1, 3])
    order = {
        policy: run(
            work, VllmServer(settings=settings(policy=policy, max_num_seqs=1))
        ).finished_s.tolist()
        for policy in ("fcfs", "shortest", "priority")
    }

    assert {
        "fcfs": [1.0, 2.0, 3.0],
        "shortest": [3.0, 2.0, 1.0],
        "priority": [2.0, 1.0, 3.0],
    } == order


def test_prefill_and_decode_apart() -> None:
    """The first token comes from one server, the rest from another, the cache over a link."""
    prefill, decode = VllmServer(settings=settings()), VllmServer(settings=settings())
    batches: list[Batch] = []

    def timed(batch: Batch) -> float:
        prefill.check_integrity()
        decode.check_integrity()
        batches.append(batch)
        return a_second(batch)

    loop = Loop(
        traffic([(0.0, 10, 4), (0.5, 10, 1)]),
        [prefill],
        RoundRobin(),
        timed,
        decoders=[decode],
        moved_s=lambda request: request.prompt * 0.05,
    )
    outcome = loop.run()

    # 1 s, 0.5 s under way, three decodes; the second has its only token from its prompt.
    assert [1.0, 2.0] == outcome.first_token_s.tolist()
    assert [4.5, 2.0] == outcome.finished_s.tolist()
    assert 20 == outcome.computed_tokens
    assert [11, 12, 13] == [batch.contexts[0] for batch in batches if batch.contexts]


def test_what_never_fits_is_refused() -> None:
    """Longer than a sequence may be, or than the pool."""
    work = traffic([(0.0, 400, 1), (0.0, 100, 30), (0.0, 10, 1)])

    assert [True, True, False] == run(work, VllmServer(settings=settings(20))).rejected.tolist()
