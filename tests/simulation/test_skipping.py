"""Steps that change nothing but lengths are taken together: the same times, far fewer events."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kvplan.core.step import AttentionCost, Knot, StepCost
from kvplan.simulation.loop import Loop, rise_of
from kvplan.simulation.outcome import Outcome
from kvplan.simulation.paged.settings import CacheGroup, PagedSettings
from kvplan.simulation.router import LeastLoaded, RoundRobin
from kvplan.simulation.servers.base import Server
from kvplan.simulation.servers.contiguous import ContiguousServer
from kvplan.simulation.servers.llamacpp import LlamaServer, LlamaSettings
from kvplan.simulation.servers.sglang import SglangServer, SglangSettings
from kvplan.simulation.servers.tensorrt import TensorRTServer
from kvplan.simulation.servers.vllm import VllmServer
from kvplan.simulation.synthetic import synthetic

COST = StepCost(
    fixed_s=0.004,
    sequence_s=1e-5,
    linear=(Knot(1, 0.006), Knot(256, 0.007), Knot(8192, 0.2)),
    attention=(
        AttentionCost(window=None, read_s=1e-8, pair_s=1e-10),
        AttentionCost(window=300, read_s=1e-7, pair_s=1e-10),
    ),
    source="test",
)
PAGED = PagedSettings(
    num_blocks=300,
    groups=(CacheGroup(kind="full", block_size=16),),
    max_num_seqs=8,
    max_num_batched_tokens=512,
    max_model_len=2048,
)
SERVERS: dict[str, Callable[[], Server]] = {
    "sglang": lambda: SglangServer(tokens=5000, settings=SglangSettings(max_running=32)),
    "sglang, pages of 16, a full pool": lambda: SglangServer(
        tokens=2400, page=16, settings=SglangSettings(conservativeness=0.2)
    ),
    "tensorrt-llm": lambda: TensorRTServer(
        tokens=4000, page=32, max_len=2048, max_batch=16, batched_tokens=2048
    ),
    "tensorrt-llm that waits": lambda: TensorRTServer(
        tokens=4000,
        page=32,
        max_len=2048,
        max_batch=16,
        batched_tokens=2048,
        wait_steps=9,
        wait_share=0.9,
    ),
    "sglang that looks seldom": lambda: SglangServer(
        tokens=5000, settings=SglangSettings(recv_interval=8)
    ),
    "sglang, mixed chunks": lambda: SglangServer(
        tokens=5000, settings=SglangSettings(chunk_tokens=256, mixed_chunk=True)
    ),
    "llama.cpp": lambda: LlamaServer(settings=LlamaSettings(cells=2500, slots=4)),
    "vllm": lambda: VllmServer(settings=PAGED),
    "vllm, a full pool": lambda: VllmServer(settings=replace(PAGED, num_blocks=120)),
    "contiguous": lambda: ContiguousServer(
        tokens=6000, max_len=700, max_running=16, batched_tokens=4096
    ),
}
TRAFFIC: tuple[dict[str, Any], ...] = (
    {"rate": 4.0, "shared_prefix": 64},
    {"concurrency": 12},
    {"rate": 2.0, "turns": 3, "think": "exponential:1"},
)


def outcome_of(
    server: Server, asked: dict[str, Any], skipping: StepCost | None, *, ahead: bool
) -> tuple[int, Any]:
    """How many batches were timed, and the outcome."""
    timed = []

    def seconds(batch: Any) -> float:
        timed.append(batch)
        server.check_integrity()
        return COST.seconds(batch.contexts, batch.chunks)

    traffic = synthetic(requests=60, prompt="uniform:20-400", output="uniform:1-200", **asked)
    loop = Loop(traffic, [server], RoundRobin(), seconds, skipping=skipping, ahead=ahead)
    outcome = loop.run()
    return len(timed), outcome


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("asked", TRAFFIC, ids=["rate", "loop", "chats"])
@pytest.mark.parametrize("name", SERVERS)
def test_the_times_are_the_same(name: str, asked: dict[str, Any], ahead: bool) -> None:
    """Whether each step is an event of its own or not."""
    one, other = SERVERS[name](), SERVERS[name]()
    events, stepped = outcome_of(one, asked, None, ahead=ahead)
    fewer, skipped = outcome_of(other, asked, COST, ahead=ahead)

    for column in ("arrived_s", "admitted_s", "first_token_s", "finished_s", "hit_tokens",
                   "preemptions"):  # fmt: skip
        np.testing.assert_allclose(
            getattr(stepped, column), getattr(skipped, column), rtol=1e-9, err_msg=column
        )
    counts: list[Callable[[Outcome], float]] = [
        lambda o: o.num_steps, lambda o: o.recomputed_tokens, lambda o: o.evicted_blocks,
        lambda o: o.peak_used_blocks, lambda o: o.max_running,
    ]  # fmt: skip
    assert [count(stepped) for count in counts] == [count(skipped) for count in counts]
    assert pytest.approx(stepped.mean_used_blocks, rel=0.01) == skipped.mean_used_blocks
    assert one.extras() == pytest.approx(other.extras())
    assert fewer < 0.8 * events


@pytest.mark.parametrize("name", ["vllm", "sglang", "llama.cpp"])
def test_copies_skip_past_each_other(name: str) -> None:
    """In an open loop only arrivals tie copies together: the times are still the same."""
    traffic = synthetic(requests=60, prompt="uniform:20-400", output="uniform:1-200", rate=6.0)

    def seconds(batch: Any) -> float:
        return COST.seconds(batch.contexts, batch.chunks)

    stepped, skipped = (
        Loop(
            traffic,
            [SERVERS[name]() for _ in range(3)],
            LeastLoaded(),
            seconds,
            skipping=skipping,
        ).run()
        for skipping in (None, COST)
    )
    for column in ("admitted_s", "first_token_s", "finished_s", "hit_tokens"):
        np.testing.assert_allclose(
            getattr(stepped, column), getattr(skipped, column), rtol=1e-9, err_msg=column
        )


def test_whoever_decodes_sees_what_is_handed_over() -> None:
    """Prompts apart: a cache that comes ends the steps that are taken together."""
    traffic = synthetic(requests=60, prompt="uniform:20-400", output="uniform:1-200", rate=6.0)
    stepped, skipped = (
        Loop(
            traffic,
            [SERVERS["vllm"]()],
            RoundRobin(),
            lambda batch: COST.seconds(batch.contexts, batch.chunks),
            decoders=[SERVERS["vllm"]() for _ in range(2)],
            moved_s=lambda request: request.prompt * 1e-4,
            skipping=skipping,
        ).run()
        for skipping in (None, COST)
    )
    np.testing.assert_allclose(stepped.finished_s, skipped.finished_s, rtol=1e-9)
    assert not np.isnan(skipped.finished_s).any()


def test_a_step_takes_longer_by_what_each_sees_more() -> None:
    """Two of three contexts are below the window, the nearer by 50 tokens."""
    rise, most = rise_of(COST, [100, 250, 400])

    assert (pytest.approx(3e-8 + 2e-7), 50) == (rise, most)
