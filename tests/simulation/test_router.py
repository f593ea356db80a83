"""Copies behind a router: who gets what, and what it costs in hits."""

from __future__ import annotations

import pytest

from kvplan.core.errors import UnknownName
from kvplan.simulation.router import router_of
from kvplan.simulation.servers.sglang import SglangServer, SglangSettings
from tests.simulation.servers.cases import request, run, traffic


def servers(count: int, tokens: int = 10_000) -> list[SglangServer]:
    return [SglangServer(tokens=tokens, settings=SglangSettings()) for _ in range(count)]


@pytest.mark.parametrize(
    ("router", "expected"),
    [
        ("round-robin", [0, 1, 2, 0, 1, 2]),
        ("least-loaded", [1, 2, 1, 2, 0, 1]),  # 0 begins with two requests
    ],
)
def test_who_gets_the_next(router: str, expected: list[int]) -> None:
    """In turn, or to whoever has the fewest; the first of equals."""
    copies = servers(3)
    copies[0].add(request(90, 5, 5))
    copies[0].add(request(91, 5, 5))
    chosen = router_of(router)
    found = []
    for index in range(6):
        asked = request(index, 10, 5)
        found.append(chosen.choose(asked, copies))
        copies[found[-1]].add(asked)

    assert expected == found


def test_prefix_aware_goes_where_the_prompt_is() -> None:
    """A conversation stays where it began; a new one goes to the emptiest."""
    copies = servers(2)
    chosen = router_of("prefix-aware")
    found = []
    for ids in ([1, 2, 3], [7, 8, 9], [1, 2, 3, 4], [7, 8, 9, 10], [1, 2, 3, 4, 5]):
        asked = request(len(found), 10 * len(ids), 5, ids=ids, block=10)
        found.append(chosen.choose(asked, copies))
        copies[found[-1]].add(asked)

    assert [0, 1, 0, 1, 0] == found


def test_prefix_aware_leaves_one_that_is_much_fuller() -> None:
    """More than 64 requests and half as many again more than the emptiest: balance wins."""
    copies = servers(2)
    chosen = router_of("prefix-aware")
    found = []
    for index in range(66):
        asked = request(index, 30, 5, ids=[1, 2, 3], block=10)
        found.append(chosen.choose(asked, copies))
        copies[found[-1]].add(asked)

    assert [0] * 65 + [1] == found


@pytest.mark.parametrize(
    ("router", "hit_rate"),
    [("round-robin", 0.0), ("least-loaded", 0.5), ("prefix-aware", 0.5)],
)
def test_what_routing_costs_in_hits(router: str, hit_rate: float) -> None:
    """Three conversations of two turns on two copies; each turn comes when all is idle.

    In turn a second question lands where the first did not; alone at a time all go to the first.
    """
    rows = [(20.0 * n, 40, 2) for n in range(6)]
    ids = [[10 * c + n for n in range(4)] for c in (1, 1, 2, 2, 3, 3)]
    outcome = run(traffic(rows, ids, 10), *servers(2), router=router_of(router))

    assert hit_rate == pytest.approx(outcome.hit_tokens.sum() / outcome.queried_tokens, abs=0.02)


def test_an_unknown_router_lists_the_known() -> None:
    with pytest.raises(UnknownName, match="round-robin, least-loaded, prefix-aware"):
        router_of("random")
