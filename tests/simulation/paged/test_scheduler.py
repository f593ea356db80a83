"""The reference scheduler under random traffic: nothing is lost, nothing is held twice."""

from __future__ import annotations

import random
from typing import get_args

import pytest

from kvplan.core.errors import BadValue
from kvplan.simulation.paged.cache import check_fits, most_blocks
from kvplan.simulation.paged.request import Request
from kvplan.simulation.paged.scheduler import Scheduler
from kvplan.simulation.paged.settings import (
    CacheGroup,
    PagedSettings,
    Policy,
    Preemption,
    version_rules,
)
from tests.simulation.fast.traffics import GROUPS

LONGEST = 500


def settings(
    groups: str, policy: Policy = "fcfs", preemption: Preemption = "recompute"
) -> PagedSettings:
    return PagedSettings(
        num_blocks=80,
        groups=GROUPS[groups],
        max_num_seqs=12,
        max_num_batched_tokens=200,
        max_model_len=LONGEST,
        policy=policy,
        preemption=preemption,
        reserve_prompt=False,
    )


def request(rng: random.Random, number: int) -> Request:
    prompt, family = rng.randrange(1, 300), rng.randrange(4)
    return Request(
        number=number,
        num_prompt=prompt,
        num_output=rng.randrange(1, 150),
        keys=lambda tokens: (family if tokens <= 96 else f"own {number}", tokens),
        priority=rng.randrange(3),
        order=number,
    )


@pytest.mark.parametrize("preemption", get_args(Preemption))
@pytest.mark.parametrize("policy", get_args(Policy))
@pytest.mark.parametrize("groups", ["full", "window and full", "states"])
def test_nothing_is_lost(groups: str, policy: Policy, preemption: Preemption) -> None:
    """Every request ends with all its tokens; blocks and holders agree after each step."""
    rng = random.Random(f"{groups}{policy}{preemption}")
    scheduler = Scheduler(settings(groups, policy, preemption))
    requests = [request(rng, number) for number in range(30)]
    for number, sent in enumerate(requests):
        scheduler.add(sent)
        if number % 3 == 0:
            step(scheduler)
    while not scheduler.is_idle:
        step(scheduler)

    assert [one.num_output for one in requests] == [one.num_generated for one in requests]
    assert 79 == scheduler.cache.num_free


def step(scheduler: Scheduler) -> None:
    scheduled = scheduler.step()
    assert sum(scheduled.values()) <= scheduler.settings.max_num_batched_tokens
    scheduler.settle(scheduled, {one for one in scheduled if not one.is_prefilling})
    scheduler.check_integrity()


def test_who_is_important_goes_first() -> None:
    """Of those that wait, and never gives way to another."""
    scheduler = Scheduler(settings("full", "priority"))
    rng = random.Random(3)
    requests = [request(rng, number) for number in range(20)]
    for sent in requests:
        scheduler.add(sent)
    scheduler.step()
    started = [one.priority for one in scheduler.running]

    assert sorted(started) == started
    assert max(started) <= min(one.priority for one in requests if one not in scheduler.running)


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("0.11.2", {"keyless_first": False, "reserve_prompt": False, "retention": None}),
        ("0.19.1", {"keyless_first": False, "reserve_prompt": True, "retention": None}),
        ("0.28.0", {"keyless_first": True, "reserve_prompt": True, "retention": None}),
        ("0.32.0", {"keyless_first": True, "reserve_prompt": True, "retention": 0}),
    ],
)
def test_what_a_version_decides(version: str, expected: dict[str, object]) -> None:
    """As read in that release."""
    assert expected == version_rules(version)


@pytest.mark.parametrize(
    ("groups", "expected"),
    [("full", 32), ("window and full", 32 + 22), ("chunks", 21 + 32), ("states", 3 * 2 + 7)],
)
def test_the_most_that_one_request_holds(groups: str, expected: int) -> None:
    """Windows the window and a step's tokens; states the running one and the one before."""
    assert expected == most_blocks(settings(groups), LONGEST)


def test_a_request_that_never_fits_is_told() -> None:
    """With what it needs and what there is."""
    with pytest.raises(BadValue, match="500 tokens holds 32 blocks; the pool has 19"):
        check_fits(
            PagedSettings(
                num_blocks=20,
                groups=(CacheGroup(kind="full", block_size=16),),
                max_num_seqs=1,
                max_num_batched_tokens=512,
                max_model_len=500,
            ),
            500,
        )
