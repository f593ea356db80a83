"""The loop a step at a time and the compiled engine: the same times, counts and means."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kvplan.core.step import AttentionCost, Knot, StepCost, Way
from kvplan.simulation.fast.engine import simulate as compiled
from kvplan.simulation.loop import Loop
from kvplan.simulation.paged.settings import CacheGroup, PagedSettings
from kvplan.simulation.router import RoundRobin
from kvplan.simulation.servers.vllm import VllmServer
from kvplan.simulation.synthetic import synthetic

COST = StepCost(
    fixed_s=0.004,
    sequence_s=1e-5,
    linear=(Knot(1, 0.006), Knot(256, 0.007), Knot(8192, 0.2)),
    attention=(AttentionCost(window=None, read_s=1e-8, pair_s=1e-10),),
    source="test",
)
COLUMNS = ("arrived_s", "admitted_s", "first_token_s", "finished_s", "hit_tokens", "preemptions",
           "rejected")  # fmt: skip
FULL = CacheGroup(kind="full", block_size=16)
WINDOW = CacheGroup(kind="window", block_size=16, window=100)
STATE = CacheGroup(kind="state", block_size=16, checkpoint=True)
FIGURES = ("duration_s", "num_steps", "queried_tokens", "computed_tokens", "recomputed_tokens",
           "evicted_blocks", "num_blocks", "mean_used_blocks", "peak_used_blocks", "mean_running",
           "max_running", "mean_waiting", "max_waiting")  # fmt: skip


def settings(**changed: Any) -> PagedSettings:
    given = {
        "num_blocks": 400,
        "groups": (FULL,),
        "max_num_seqs": 16,
        "max_num_batched_tokens": 512,
        "max_model_len": 2048,
    }
    return PagedSettings(**given | changed)


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize(
    ("asked", "changed"),
    [
        ({"rate": 8.0, "shared_prefix": 128, "prefixes": 3}, {}),
        ({"concurrency": 24}, {"num_blocks": 150}),
        ({"rate": 4.0, "turns": 4, "think": "exponential:1"}, {}),
        ({"rate": 8.0}, {"policy": "shortest", "num_blocks": 150}),
        ({"rate": 8.0}, {"prefix_caching": False, "keyless_first": False}),
        ({"rate": 20.0, "turns": 3}, {"reserve_prompt": False, "watermark": 0.05}),
        ({"rate": 8.0, "turns": 3}, {"groups": (FULL, WINDOW, WINDOW)}),
        ({"concurrency": 24}, {"groups": (FULL, WINDOW), "num_blocks": 200, "retention": None}),
        ({"rate": 8.0, "shared_prefix": 128}, {"groups": (FULL, STATE)}),
    ],
)
def test_both_ways_are_the_same(
    asked: dict[str, Any], changed: dict[str, Any], ahead: bool
) -> None:
    """Open and closed loops, chats, shared prefixes, a full pool."""
    traffic = synthetic(requests=120, prompt="uniform:20-400", output="uniform:1-120", **asked)
    traffic = replace(traffic, way=Way(0.002, 1e-6))
    loop = Loop(
        traffic,
        [VllmServer(settings=settings(**changed))],
        RoundRobin(),
        lambda batch: COST.seconds(batch.contexts, batch.chunks),
        skipping=COST,
        ahead=ahead,
    )
    stepped, fast = loop.run(), compiled(traffic, settings(**changed), COST, ahead=ahead)

    for name in COLUMNS:
        np.testing.assert_allclose(
            getattr(stepped, name), getattr(fast, name), rtol=1e-9, err_msg=name
        )
    for name in FIGURES:
        assert pytest.approx(getattr(stepped, name), rel=1e-9) == getattr(fast, name), name
