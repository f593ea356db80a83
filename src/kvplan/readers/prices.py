"""What cards rent for: dated list prices by provider, each with its source."""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

ON_DEMAND: Final = "on-demand"
SPOT: Final = "spot"
KINDS: Final = {ON_DEMAND: "on-demand list", SPOT: "spot"}
_DATED = re.compile(r"\d{4}-\d{2}(-\d{2})?")


class ListPrice(NamedTuple):
    """One card of a provider's instance for an hour, in US dollars.

    ``gpus`` are the cards of the instance, which is rented whole; ``date`` is the day or month of
    the figure where it has one, and ``said`` what stands in its place.
    """

    device: str
    kind: str
    provider: str
    instance: str
    region: str
    gpus: int
    usd_per_gpu_hour: float
    date: str | None
    said: str
    source: str


@cache
def list_prices() -> tuple[ListPrice, ...]:
    """Every price of the shipped table that is of one known device; ranges are of none."""
    text = files("kvplan").joinpath("data/prices.json").read_text(encoding="utf-8")
    return tuple(_price(row) for row in json.loads(text) if row["device"] and "provider" in row)


def _price(row: dict[str, Any]) -> ListPrice:
    said = row["date"]
    return ListPrice(
        device=row["device"],
        kind=row["kind"],
        provider=row["provider"],
        instance=row["instance"],
        region=row["region"],
        gpus=row["gpus"],
        usd_per_gpu_hour=row["usd_per_gpu_hour"],
        date=said if _DATED.fullmatch(said) else None,
        said=said,
        source=row["source"],
    )


@cache
def _of_device(device: str, kind: str) -> tuple[ListPrice, ...]:
    """The prices of a device, the cheapest first."""
    found = (row for row in list_prices() if row.device == device and row.kind == KINDS[kind])
    return tuple(sorted(found, key=lambda row: (row.usd_per_gpu_hour, row.provider)))


def cheapest(
    device: str, group: int = 1, *, kind: str = ON_DEMAND, provider: str = "", whole: bool = False
) -> ListPrice | None:
    """The least that a card costs in an instance that holds ``group`` of them; with ``whole`` the
    least that the group costs in instances that are paid whole.

    Where no listed instance is as large, the cheapest of any size: providers that rent single
    cards mostly rent pairs at twice the price. None where nothing is listed.
    """
    asked = provider.lower()
    rows = [row for row in _of_device(device, kind) if asked in row.provider.lower()]
    large = [row for row in rows if row.gpus >= group] or rows[:1]
    if whole:
        return min(large, key=lambda row: row.usd_per_gpu_hour * row.gpus, default=None)
    return large[0] if large else None


def providers() -> list[str]:
    """Those that list prices."""
    return sorted({row.provider for row in list_prices()})
