"""The hour of a card: given, listed with its date, reserved, spot, owned."""

from __future__ import annotations

from typing import Any

import pytest

import kvplan
from kvplan.core.errors import BadValue
from kvplan.planning.cost.pricing import HOURS_A_YEAR, pricing_of
from kvplan.readers.devices import find_device
from kvplan.readers.prices import cheapest, list_prices

H100 = find_device("h100-sxm-80gb")[0]
GB10 = find_device("gb10")[0]
# Flags, then the hour of one H100.
HOURS: list[tuple[dict[str, Any], float]] = [
    ({"price": 2.95}, 2.95),
    ({"price": 250, "currency": "inr", "exchange_rate": 84}, 250.0),
    ({}, 2.29),
    ({"currency": "INR", "exchange_rate": 84}, 2.29 * 84),
    ({"price_kind": "spot"}, 2.2712),
    ({"price_kind": "reserved", "discount": "40%"}, 2.29 * 0.6),
    ({"provider": "aws"}, 6.88),
    ({"capital": 30_000}, 30_000 / (4 * HOURS_A_YEAR)),
    (
        {"capital": 30_000, "life_years": 3, "power_price": 0.2, "pue": 1.5},
        30_000 / (3 * HOURS_A_YEAR) + 0.7 * 1.5 * 0.2,
    ),
    ({"capital": 0, "power_price": 0.1, "power_watts": 1000, "pue": 1}, 0.1),
]
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"price_kind": "monthly"}, "--price-kind 'monthly' is not one of on-demand, spot, reserved."),
    ({"price_kind": "reserved"}, "No reserved price is listed."),
    ({"discount": "140%"}, "--discount 140% is not a share below 1."),
    ({"provider": "nobody"}, "No prices of 'nobody' are listed."),
    ({"exchange_rate": 0}, "--exchange-rate 0 is not a rate."),
    ({"capital": -1}, "--capital -1 is not the price of a card."),
    ({"life_years": float("inf")}, "--life-years inf is not a life in years."),
    ({"pue": 0.5}, "--pue 0.5 is not a power usage effectiveness."),
    ({"price": 1, "capital": 2}, "--price and --capital both price a card."),
    ({"price": 1, "discount": 0.4}, "--discount is off the list, and a price is given."),
    ({"power_price": 0.2}, "--power-price is of a card that is owned."),
    ({"price": 1, "life_years": 3}, "--life-years is of a card that is owned."),
    ({"price": True}, "--price True is not a price of one card for one hour."),
]


@pytest.mark.parametrize(("flags", "hour"), HOURS)
def test_an_hour_of_one_card(flags: dict[str, Any], hour: float) -> None:
    """By each way to pay for it."""
    rate = pricing_of(**flags).rate(H100)

    assert rate is not None
    assert pytest.approx(hour) == rate.per_gpu_hour


@pytest.mark.parametrize(("flags", "message"), WRONG)
def test_what_cannot_be(flags: dict[str, Any], message: str) -> None:
    """A sentence names the flag and what it had."""
    with pytest.raises(BadValue) as found:
        pricing_of(**flags)

    assert message == found.value.message


def test_dollars_need_a_rate() -> None:
    """A list price in another currency is no price without its rate."""
    assert pricing_of(currency="INR").rate(H100) is None


def test_power_that_is_not_known() -> None:
    """An owned card whose power is paid for has to have one."""
    card = find_device("gh200")[0]
    with pytest.raises(BadValue, match=r"What GH200.* draws is not known"):
        pricing_of(capital=1, power_price=0.1).rate(card)


def test_a_card_that_nobody_lists() -> None:
    """It has no price."""
    assert pricing_of().rate(GB10) is None


def test_every_price_is_dated_or_says_so() -> None:
    """A date, or the words that stand in its place; always a source."""
    rows = list_prices()
    undated, dated = pricing_of().rate(H100), pricing_of(provider="gcp").rate(H100)

    assert all(row.source and (row.date or row.said) for row in rows)
    assert undated is not None
    assert dated is not None
    assert "Verda on-demand, undated" == undated.said
    assert "GCP on-demand, 2026-09-06" == dated.said


def test_a_group_is_priced_on_an_instance_that_holds_it() -> None:
    """One H100 rents alone; eight that share a model come as eight."""
    one, eight = cheapest(H100.name, 1), cheapest(H100.name, 8)

    assert one is not None
    assert eight is not None
    assert (1, 8) == (one.gpus, eight.gpus)
    assert one.usd_per_gpu_hour < eight.usd_per_gpu_hour


def test_instances_paid_whole() -> None:
    """Four cards of an eight cost eight; two of singles cost two."""
    rate = pricing_of(whole_instances=True).rate(H100, 4)
    single = pricing_of(whole_instances=True).rate(H100, 1)

    assert rate is not None
    assert single is not None
    assert (8, 8 * rate.per_gpu_hour) == (rate.instance_gpus, rate.per_hour(4))
    assert 2 * single.per_gpu_hour == single.per_hour(2)


def test_fit_costs_its_cards() -> None:
    """An hour is that of all cards; a conversation's is shared by those that fit."""
    answer = kvplan.fit("llama-3.1-8b", gpu="h100-sxm-80gb", gpus=2, price=2.0, context="8k")
    cost = answer.cost

    assert cost is not None
    assert cost.per_hour == 4.0
    assert 4.0 / answer.sequences == cost.per_sequence_hour
    assert answer.to_dict()["cost"]["source"] == "--price"
    assert answer.to_dict()["cost"]["date"] is None


def test_the_estimate_costs_more_than_the_bound() -> None:
    """Nothing is faster than a bound, so nothing is cheaper; prompts between steps cost more."""
    asked: dict[str, Any] = {"gpu": "h100-sxm-80gb", "concurrency": 16, "offline": True}
    plain = kvplan.fit("llama-3.1-8b", context=2200, **asked).to_dict()["cost"]
    loop = kvplan.fit("llama-3.1-8b", prompt=2000, output=200, **asked).to_dict()["cost"]
    output = "estimated_per_million_output_tokens"

    for tokens in ("input", "output"):
        key = f"per_million_{tokens}_tokens"
        assert plain[key] < plain[f"estimated_{key}"]
    assert plain[output] < loop[output]


def test_fit_prices_by_the_list() -> None:
    """Without --price the cheapest list price is taken, with its source."""
    cost = kvplan.fit("llama-3.1-8b", gpu="a100-sxm-40gb", context="8k").to_dict()["cost"]

    assert "on-demand" == cost["kind"]
    assert cost["source"]
    assert cost["per_million_input_tokens"] < cost["per_million_output_tokens"]
