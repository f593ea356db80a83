"""A run of memory for each request: where it lies, and what of it is wasted."""

from __future__ import annotations

from typing import Any

import pytest

from kvplan.core.errors import BadValue
from kvplan.simulation.servers.contiguous import ContiguousServer
from tests.simulation.servers.cases import random_traffic, request, run, traffic


def server(tokens: int = 100, max_len: int = 50, **flags: Any) -> ContiguousServer:
    given = {"max_running": 8, "batched_tokens": 100} | flags
    return ContiguousServer(tokens=tokens, max_len=max_len, **given)


@pytest.mark.parametrize(
    ("reserve", "prompt", "output", "expected"),
    [("max", 10, 5, 50), ("oracle", 10, 5, 15), ("power", 10, 5, 16), ("power", 10, 7, 32),
     ("power", 30, 10, 50), ("power", 10, 6, 16)],
)  # fmt: skip
def test_what_is_reserved(reserve: str, prompt: int, output: int, expected: int) -> None:
    """A power of two is the least that holds it, and never more than the model takes."""
    assert expected == server(reserve=reserve).reserved(request(0, prompt, output))


def test_how_many_run_at_once_is_how_much_is_reserved() -> None:
    """Four requests of 15 tokens: two at a time of 50 each, or all of exactly 15."""
    work = traffic([(0.0, 10, 5)] * 4)

    assert (2, 4) == tuple(run(work, server(reserve=way)).max_running for way in ("max", "oracle"))


def test_a_hole_between_two_runs_is_too_small() -> None:
    """Pool of 100: A 40, B 20, C 40. When A and C are gone 80 are free, in two pieces of 40."""
    work = traffic([(0.0, 30, 10), (0.0, 5, 15), (0.0, 30, 10), (0.5, 30, 20)])
    one = server(100, reserve="oracle")
    outcome = run(work, one)

    assert 15.0 == outcome.admitted_s[3]  # not at 10, when A and C end
    assert one.extras()["fragmented_share"] > 0


def test_the_account_of_the_pool() -> None:
    """One request of 4 + 2 tokens in a run of 10 of 20: two steps."""
    one = server(20, 10)
    run(traffic([(0.0, 4, 2)]), one)

    # Step 1: 0 used, 6 later, 4 never, 10 free. Step 2: 4 used, 2 later, 4 never, 10 free.
    assert {
        "used_share": 4 / 40,
        "reserved_never_used_share": 8 / 40,
        "reserved_not_yet_used_share": 8 / 40,
        "fragmented_share": 0.0,
    } == one.extras()


@pytest.mark.parametrize("reserve", ["max", "power", "oracle"])
def test_nothing_is_lost_under_any_traffic(reserve: str) -> None:
    """Runs stay apart, and everybody ends."""
    for seed in range(3):
        outcome = run(random_traffic(seed), server(200, 90, reserve=reserve))
        assert (outcome.finished_s >= outcome.first_token_s).all()


def test_longer_than_a_run_is_refused() -> None:
    outcome = run(traffic([(0.0, 50, 10), (0.0, 10, 2)]), server())

    assert [True, False] == outcome.rejected.tolist()


def test_an_unknown_way_lists_the_known() -> None:
    with pytest.raises(BadValue, match="max, power, oracle"):
        server(reserve="half")
