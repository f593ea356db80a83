"""What the compiled engine takes, refuses and keeps in memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kvplan.core.errors import BadQuestion
from kvplan.simulation.fast import layout
from kvplan.simulation.fast.engine import simulate
from kvplan.simulation.paged.settings import PagedSettings
from kvplan.simulation.traffic import Traffic
from tests.simulation.fast.traffics import COST, FULL, traffic

SETTINGS = PagedSettings(
    num_blocks=100,
    groups=(FULL,),
    max_num_seqs=8,
    max_num_batched_tokens=256,
    max_model_len=700,
)
TRAFFIC_BYTES = 7 * 8  # a request's columns of traffic


def taken(whole: Traffic, count: int) -> Traffic:
    """The first so many requests."""
    columns = ("arrival_s", "prompt_tokens", "output_tokens", "after", "think_s", "priority")
    starts = whole.hash_starts[: count + 1]
    cut = {name: getattr(whole, name)[:count] for name in columns}
    return replace(whole, **cut, hash_starts=starts, hash_ids=whole.hash_ids[: starts[-1]])


@pytest.mark.parametrize("count", [0, 1, 2])
def test_little_traffic(count: int) -> None:
    """No request is no time."""
    outcome = simulate(taken(traffic("shared", 0), count), SETTINGS, COST)

    assert count == np.isfinite(outcome.finished_s).sum()
    assert (count > 0) == (outcome.duration_s > 0)


def test_what_can_never_fit_is_refused_at_once() -> None:
    """A prompt as long as the longest sequence, and a sequence longer than the pool; others run."""
    asked = taken(traffic("unique", 0), 4)
    asked = replace(
        asked,
        prompt_tokens=np.array([700, 600, 100, 699]),
        output_tokens=np.array([1, 90, 10, 50]),
    )
    small = replace(SETTINGS, num_blocks=40)

    assert [True, True, False, True] == simulate(asked, small, COST).rejected.tolist()
    assert [True, False, False, False] == simulate(asked, SETTINGS, COST).rejected.tolist()


def test_an_answer_ends_at_the_longest_sequence() -> None:
    """As the engine ends it, however much was asked."""
    asked = replace(
        taken(traffic("unique", 0), 1),
        prompt_tokens=np.array([690]),
        output_tokens=np.array([10**6]),
    )
    outcome = simulate(asked, SETTINGS, COST, step_by_step=True)

    assert 3 + 9 == outcome.num_steps  # three chunks of 256, the last of which gives a token


@pytest.mark.parametrize("change", [lambda ids: ids - (1 << 62), lambda ids: ids * ((1 << 61) - 1)])
def test_ids_of_any_size(change: object) -> None:
    """Names of blocks are names: their numbers change nothing."""
    asked = traffic("shared", 1)
    assert callable(change)
    same = replace(asked, hash_ids=change(asked.hash_ids))
    one, other = (simulate(either, SETTINGS, COST) for either in (asked, same))

    assert one.hit_tokens.sum() > 0
    np.testing.assert_array_equal(one.finished_s, other.finished_s)
    np.testing.assert_array_equal(one.hit_tokens, other.hit_tokens)


def test_swapping_is_not_compiled() -> None:
    """It is said, not left out."""
    with pytest.raises(BadQuestion, match="recomputing alone"):
        simulate(traffic("unique", 0), replace(SETTINGS, preemption="swap"), COST)


def test_a_request_takes_less_than_200_bytes() -> None:
    """Its traffic, what became of it, its place in the queue."""
    own = layout.REQUEST.itemsize + layout.RANK.itemsize + 4
    copied = 8 + 1  # preemptions and refusals as columns

    assert TRAFFIC_BYTES + own + copied <= 200


def test_the_timeline_is_bounded() -> None:
    """However many steps there are, in the order of time."""
    outcome = simulate(traffic("unique", 1, size=1500), SETTINGS, COST, step_by_step=True)
    times = outcome.timeline.time_s

    assert outcome.num_steps > layout.TIMELINE
    assert 100 < len(times) <= layout.TIMELINE
    assert (np.diff(times) > 0).all()
