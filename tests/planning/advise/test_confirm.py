"""The choice in the simulator, and the arithmetic of the load beside what the simulator sees."""

from __future__ import annotations

from typing import Any

import pytest

import kvplan
from kvplan.core.errors import BadValue
from kvplan.planning.advise.confirm import confirm
from kvplan.planning.advise.outcome import Outcome

# Traffic, and how near the load's p95 of first token and time per token are to the simulator's.
LOADS: list[tuple[dict[str, Any], float, float]] = [
    ({"rate": "3/s", "prompt": "lognormal:1500,0.7", "output": "lognormal:150,0.5"}, 0.35, 0.25),
    ({"rate": "2/s", "prompt": 2000, "output": 100}, 0.35, 0.25),
    ({"users": 16, "prompt": "lognormal:1000,0.5", "output": "uniform:50-150"}, 0.35, 0.25),
]


def best(**asked: Any) -> Outcome:
    answer = kvplan.advise("llama-3.1-8b", gpu="h100-sxm-80gb", offline=True, **asked)
    assert answer.best is not None
    assert answer.best.outcome is not None
    return answer.best.outcome


@pytest.mark.parametrize(("asked", "first", "each"), LOADS)
def test_the_load_is_near_the_simulator(asked: dict[str, Any], first: float, each: float) -> None:
    """Closed arithmetic beside the engine's own scheduler over drawn requests."""
    one = best(**asked)
    seen = confirm([one], one.goal)[-1]

    assert one.served is not None
    assert pytest.approx(seen.tpot_s, rel=each) == one.served.tpot_s
    assert pytest.approx(seen.ttft_s, rel=first) == one.served.ttft_s


def test_what_the_simulator_refuses_is_tried_with_a_replica_more() -> None:
    """Goals between what one replica does there and what two do."""
    one = best(rate="6/s", prompt=2000, output=40)
    seen = confirm([one], one.goal)[-1]
    goal: dict[str, Any] = {
        "rate": "6/s",
        "prompt": 2000,
        "output": 40,
        "ttft": seen.ttft_s * 0.98,
    }
    answer = kvplan.advise("llama-3.1-8b", gpu="h100-sxm-80gb", simulate=True, offline=True, **goal)

    assert answer.best is not None
    assert [None] == [row.why_not for row in answer.simulated[-1:]]
    assert answer.best.outcome is answer.simulated[-1].outcome


def test_hits_are_found_and_not_given() -> None:
    """A share of hits is what the simulator finds out."""
    with pytest.raises(BadValue, match="--simulate finds hits itself"):
        kvplan.advise(
            "llama-3.1-8b", gpu="l40s", hit_rate=0.5, prompt=100, simulate=True, offline=True
        )


def test_a_conversation_is_turns() -> None:
    """Its history is in the cache: most of what prompts ask for is found there."""
    one = best(users=2, context="6k", output=64)
    seen = confirm([one], one.goal)[-1]

    assert seen.hit_rate > 0.6
    assert 0 == seen.preemptions
