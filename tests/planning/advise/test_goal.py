"""Goals as people write them, and what they come to."""

from __future__ import annotations

from typing import Any

import pytest

from kvplan.core.errors import BadValue
from kvplan.planning.advise.goal import quantile_of_sum, read_goal
from kvplan.planning.amounts import parse_budget, parse_rate, parse_seconds
from kvplan.simulation.lengths import Fixed, Uniform

AMOUNTS: list[tuple[Any, Any, float]] = [
    (lambda text: parse_seconds(text, "--ttft"), "2s", 2.0),
    (lambda text: parse_seconds(text, "--tpot"), "50ms", 0.05),
    (lambda text: parse_seconds(text, "--ttft"), 1.5, 1.5),
    (parse_budget, "10/h", 10.0),
    (parse_budget, "240/day", 10.0),
    (parse_budget, "7305/month", 10.0),
    (parse_budget, "1,200", 1200.0),
    (parse_rate, "2/s", 2.0),
    (parse_rate, "30/min", 0.5),
    (parse_rate, "7200/h", 2.0),
]
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"users": 0}, "--users 0 is not a whole number from 1 to 1,048,576."),
    ({"users": 2, "rate": 1}, "--users and --rate are two ways to say who comes."),
    ({"rate": 1, "think": "3s"}, "--think is a pause of --users; a rate has none."),
    ({"ttft": "soon"}, "--ttft soon cannot be read."),
    ({"ttft": "0s"}, "--ttft 0s is not a time."),
    ({"tpot": "5 parsecs"}, "--tpot 5 parsecs is not a time."),
    ({"budget": "10/fortnight"}, "--budget 10/fortnight is not money for a time."),
    ({"rate": "0/s"}, "--rate 0/s is not a rate of requests."),
    ({"percentile": "p20"}, "--percentile p20 is not a percentile."),
    ({"size_at": "all"}, "--size-at all is not a percentile."),
    ({"hit_rate": "100%"}, "--hit-rate 100% is not a share below 1."),
    ({"context": 1}, "--context 1 holds no prompt and answer."),
    ({"prompt": "normal:0,0"}, "--prompt normal:0,0 is less than a token."),
    ({"max_gpus": 10_000}, "--max-gpus 10000 is not a whole number from 1 to 4,096."),
]


@pytest.mark.parametrize(("read", "text", "expected"), AMOUNTS)
def test_amounts(read: Any, text: Any, expected: float) -> None:
    """In seconds, money an hour, requests a second."""
    assert pytest.approx(expected) == read(text)


@pytest.mark.parametrize(("given", "message"), WRONG)
def test_what_cannot_be(given: dict[str, Any], message: str) -> None:
    """A sentence with the flag and what it had."""
    with pytest.raises(BadValue) as found:
        read_goal(**given)

    assert message == found.value.message


def test_a_conversation() -> None:
    """Its history is cached, and the first token is judged on a whole context that is not."""
    traffic = read_goal(users=50, context="32k").traffic(None)

    assert (32768, 32768) == (traffic.peak_tokens, traffic.sized_tokens)
    assert (1024, 32768 - 512) == (traffic.fresh_tokens, traffic.judged_tokens)
    assert traffic.is_judged_cold


def test_a_request_is_all_new() -> None:
    """Of prompts that are given all is computed, but for the prefix and the hits."""
    plain = read_goal(prompt=4000, output=500).traffic(None)
    shared = read_goal(prompt=4000, output=500, shared_prefix=3000).traffic(None)
    hit = read_goal(prompt=4000, output=500, shared_prefix=3000, hit_rate=0.5).traffic(None)

    assert (4000, 1000, 500) == tuple(x.fresh_tokens for x in (plain, shared, hit))
    assert {4500} == {x.peak_tokens for x in (plain, shared, hit)}


def test_the_peak_of_lengths() -> None:
    """The longest of both; of those without a maximum all but a thousandth; the model's at most."""
    bounded = read_goal(prompt="uniform:100-1000", output=200).traffic(None)
    endless = read_goal(prompt="lognormal:1000,1", output=200)

    assert 1200 == bounded.peak_tokens
    assert 13_000 < endless.traffic(None).peak_tokens < 14_000
    assert 8192 == endless.traffic(8192).peak_tokens


def test_room_for_a_percentile() -> None:
    """Half of the sums of two even lengths are below their middle."""
    traffic = read_goal(prompt="uniform:1-1000", output="uniform:1-1000", size_at="p50").traffic(
        None
    )

    assert 2000 == traffic.peak_tokens
    assert pytest.approx(1001, rel=0.02) == traffic.sized_tokens
    assert pytest.approx(1507, rel=0.01) == quantile_of_sum(Fixed(7), Uniform(1000, 2000), 0.5)
