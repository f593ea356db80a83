"""The compiled engine decides as the reference does, at the same times."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

from kvplan.core.step import Way
from kvplan.simulation.fast.engine import simulate
from kvplan.simulation.loop import Loop
from kvplan.simulation.outcome import Outcome
from kvplan.simulation.paged.settings import PagedSettings
from kvplan.simulation.router import RoundRobin
from kvplan.simulation.servers.vllm import VllmServer
from kvplan.simulation.traffic import Traffic
from tests.simulation.fast.traffics import COST, GROUPS, SHAPES, settings, traffic

CASES = [(name, shape, seed) for name in GROUPS for shape in SHAPES for seed in range(2)]


def reference(traffic: Traffic, settings: PagedSettings, *, ahead: bool) -> Outcome:
    server = VllmServer(settings=settings)
    loop = Loop(
        traffic,
        [server],
        RoundRobin(),
        lambda batch: COST.seconds(batch.contexts, batch.chunks),
        ahead=ahead,
    )
    return loop.run()


def assert_alike(one: Outcome, other: Outcome, but: frozenset[str] = frozenset()) -> None:
    for field in fields(Outcome):
        if field.name not in but | {"timeline"}:
            expected, actual = getattr(one, field.name), getattr(other, field.name)
            np.testing.assert_allclose(actual, expected, rtol=1e-9, err_msg=field.name)
    if "timeline" not in but:
        for column in fields(one.timeline):
            expected = getattr(one.timeline, column.name)
            actual = getattr(other.timeline, column.name)
            np.testing.assert_allclose(actual, expected, rtol=1e-9, err_msg=column.name)


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize(("name", "shape", "seed"), CASES)
def test_compiled_and_reference_are_alike(name: str, shape: str, seed: int, ahead: bool) -> None:
    """Times, hits, preemptions, evictions, the timeline: of every request and of the whole."""
    asked, rules = replace(traffic(shape, seed), way=Way(0.003, 1e-6)), settings(name, seed)
    compiled = simulate(asked, rules, COST, ahead=ahead, step_by_step=True)

    assert_alike(reference(asked, rules, ahead=ahead), compiled)


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize(("name", "shape", "seed"), CASES)
def test_skipping_changes_no_time(name: str, shape: str, seed: int, ahead: bool) -> None:
    """Steps that are taken together end when they end one by one, to the last bit."""
    asked, rules = replace(traffic(shape, seed), way=Way(0.003, 1e-6)), settings(name, seed)
    slow, fast = (
        simulate(asked, rules, COST, ahead=ahead, step_by_step=step_by_step)
        for step_by_step in (True, False)
    )

    for column in ("admitted_s", "first_token_s", "finished_s", "hit_tokens", "preemptions"):
        np.testing.assert_array_equal(getattr(slow, column), getattr(fast, column))
    assert_alike(slow, fast, frozenset({"timeline"}))
    assert slow.num_steps == fast.num_steps
