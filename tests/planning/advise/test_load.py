"""Requests on a replica: the arithmetic by hand on a cost with round figures."""

from __future__ import annotations

from typing import Any

import pytest

import kvplan
from kvplan.core.step import AttentionCost, Knot, StepCost
from kvplan.planning.advise.goal import Goal, read_goal
from kvplan.planning.advise.load import Load, Replica, rising_root
from kvplan.planning.speed.batching import Batching

# 10 ms a step, 0.1 ms a new token from the second on, 1 µs a context token of each sequence.
COST = StepCost(
    fixed_s=0.010,
    sequence_s=0.0,
    linear=(Knot(1, 0.0), Knot(1001, 0.1)),
    attention=(AttentionCost(window=None, read_s=1e-6, pair_s=0.0),),
    source="by hand",
)


def load(goal: Goal, *, ranks: int = 1, stages: int = 1, apart: bool = False) -> Load:
    batching = Batching(budget=1000, group=ranks, held_up=float(ranks), apart=apart)
    replica = Replica(cost=COST, batching=batching, stages=stages, most=1000)
    return Load(replica, goal.traffic(None), goal)


def test_a_step_of_sequences() -> None:
    """Fixed part, new tokens, context: 10 sequences half way through 1,000 + 200."""
    found = load(read_goal(users=10, prompt=1000, output=200))

    assert pytest.approx(0.010 + 9e-4 + 10 * 1100e-6) == found.step_s(10)


def test_a_closed_loop_conserves_time() -> None:
    """N requests share O steps and bring a prompt each: λ = n / (O S + n W)."""
    found = load(read_goal(users=10, prompt=1000, output=200))
    step, prompt = found.step_s(10), found.prompt_s
    rate = found.rate(10)

    assert pytest.approx(0.1) == prompt
    assert pytest.approx(10 / (200 * step + 10 * prompt)) == rate
    # The same tokens a second by time per token: S / (1 − λ W).
    assert pytest.approx(200 * rate / 10, rel=1e-6) == (1 - rate * prompt) / step


def test_arrivals_run_as_many_as_little_says() -> None:
    """In flight = rate × time in flight, where answers take O tokens."""
    goal = read_goal(rate=1.0, prompt=500, output=100, percentile="p50")
    served = load(goal).arrivals(1.0)

    assert served is not None
    assert pytest.approx(1.0 * 100 * served.tpot_s, rel=0.05) == served.running


def test_a_rate_that_is_too_high() -> None:
    """Prompts alone take a tenth of a second: more than ten a second never get through."""
    goal = read_goal(rate=11.0, prompt=1000, output=10)

    assert load(goal).arrivals(11.0) is None
    assert load(goal).arrivals(1.0) is not None


def test_pauses_leave_fewer_running() -> None:
    """Users that think run less at once; in flight and pausing together they are all of them."""
    eager = load(read_goal(users=50, prompt=500, output=100)).users(50)
    pausing = load(read_goal(users=50, prompt=500, output=100, think="30s")).users(50)

    assert 50 == eager.running
    assert pausing.running < 10
    assert pytest.approx(50, rel=1e-3) == pausing.running + 30 * pausing.rate_per_s
    assert 50 == pausing.held


def test_the_first_token_alone() -> None:
    """One user waits for nobody: chunks of 1,000, each in a step, and half a step under way."""
    found = load(read_goal(users=1, prompt=2000, output=10))
    step = found.step_s(1)

    assert pytest.approx(2 * step + 0.2 + step / 2) == found.users(1).ttft_s


def test_prompts_that_go_apart() -> None:
    """A step of a prompt alone takes its fixed part too, and decodes nothing."""
    goal = read_goal(users=1, prompt=1000, output=10)
    found = load(goal, apart=True)
    step = found.step_s(1)

    assert pytest.approx(0.010 + 0.0999) == found.prompt_s
    assert pytest.approx(0.010 + 0.0999 + step / 2) == found.users(1).ttft_s


def test_stages_fill_before_they_are_busy() -> None:
    """The first of two chunks passes three more stages before all four work."""
    goal = read_goal(users=1, prompt=2000, output=10)
    one, four = load(goal).users(1), load(goal, stages=4).users(1)

    assert pytest.approx(3 * 0.1) == four.ttft_s - one.ttft_s


def test_a_cached_history_is_not_computed() -> None:
    """Nine tenths found in the cache leave a tenth of the work."""
    cold = load(read_goal(users=5, prompt=1000, output=100))
    warm = load(read_goal(users=5, prompt=1000, output=100, hit_rate="90%"))

    assert pytest.approx(cold.prompt_s / 10) == warm.prompt_s
    assert warm.users(5).tpot_s < cold.users(5).tpot_s


def test_ranks_in_lock_step_wait_for_each_other() -> None:
    """Two ranks of five run each as five alone do, but for the prompts of the other."""
    goal = read_goal(users=10, prompt=1000, output=100)
    apart, together = load(goal).users(5), load(goal, ranks=2).users(10)

    assert together.tpot_s > apart.tpot_s
    assert together.rate_per_s < 2 * apart.rate_per_s


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.999, 1.0])
def test_the_root_of_a_rising_curve(share: float) -> None:
    """Found from above to a millionth, of curves that bend either way."""
    for power in (0.5, 1.0, 3.0):
        root = rising_root(lambda x, p=power: x**p, share * 2**power, 2.0)

        assert pytest.approx(share ** (1 / power) * 2, abs=1e-4) == root
        assert root**power >= share * 2**power - 1e-9


def test_a_closed_loop_is_fits_own() -> None:
    """The mean of plain requests is near what fit says of the same clients."""
    asked: dict[str, Any] = {"prompt": 1000, "output": 300}
    for clients in (1, 8, 48):
        answer = kvplan.advise(
            "llama-3.1-8b", users=clients, gpu="h100-sxm-80gb", percentile="p50", offline=True,
            max_gpus=1, **asked,
        )  # fmt: skip
        fit = kvplan.fit(
            "llama-3.1-8b", gpu="h100-sxm-80gb", concurrency=clients, offline=True, **asked
        )
        speed = fit.to_dict()["speed"]["estimate"]
        served = answer.options[0].outcome.served  # type: ignore[union-attr]

        assert served is not None
        assert served.tpot_s == pytest.approx(speed["tpot_s"], rel=0.1)
        assert served.ttft_s == pytest.approx(speed["ttft_s"], rel=0.5)
