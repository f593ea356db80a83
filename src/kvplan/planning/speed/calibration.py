"""The rates that engines were measured to reach: one table, made by tools/calibrate_speed.py.

A rate is a general one times the factors of what a plan is: its card's family, its engine, the
engine's era on it, the type that is multiplied. What no row was measured of has the general rate
and a wider error.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, Final

from kvplan.core.version import Version
from kvplan.planning.speed.rates import SHARES, Rates

# Of which type a share depends, by its name.
OF_DENSE: Final = "share_dense"
OF_EXPERTS: Final = "share_products"


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """Rates, the relative half width of the band that holds nine of ten, and what they are from."""

    rates: Rates
    error: float
    source: str
    calibrated: bool


@cache
def table() -> dict[str, Any]:
    """The calibration as it ships."""
    text = files("kvplan").joinpath("data/speed.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


@lru_cache(maxsize=1024)
def family_of(card: str) -> str:
    """The architecture of a card by its name; empty where it is none that is known."""
    families: Mapping[str, list[str]] = table()["families"]
    longest = max(
        (
            (len(start), family)
            for family, starts in families.items()
            for start in starts
            if card.startswith(start)
        ),
        default=(0, ""),
    )
    return longest[1]


@lru_cache(maxsize=1024)
def era_of(engine: str, version: str | None) -> str:
    """The span of releases of an engine that were measured together, as ``vllm<0.8``."""
    eras: list[list[str]] = table()["eras"].get(engine, [])
    if version is None or not eras:
        return engine
    found = Version.parse(version)
    before = next((until for until in (row[0] for row in eras) if found < Version.parse(until)), "")
    return f"{engine}<{before}" if before else engine


@lru_cache(maxsize=4096)
def calibrated(
    engine: str, version: str | None, card: str, dense: str, experts: str, mixed: bool
) -> Calibrated:
    """The rates of an engine on a card for a model whose matrices are multiplied in these types."""
    said = table()
    traits = list(_traits(engine, version, card))
    names = [f"{kind} {name}" for kind, name in traits]
    values = {
        name: value * _product(said["factors"], names, name)
        for name, value in said["general"].items()
    }
    values[OF_DENSE] *= said["types"]["dense"].get(dense, 1.0)
    values[OF_EXPERTS] *= said["types"]["experts"].get(experts, 1.0)
    for name in SHARES:
        values[name] = capped(values[name])
    values["spread"] = min(values["spread"], 1.0)
    error, measured = _error(said, engine, family_of(card), mixed)
    return Calibrated(
        rates=Rates(**values),
        error=error,
        source=_source(said, engine, card, measured),
        calibrated=measured,
    )


def capped(share: Any) -> Any:
    """A product of factors as a share: all but itself below 0.8, and never more than 1."""
    return share / (1 + share**8) ** 0.125


def _traits(engine: str, version: str | None, card: str) -> Iterator[tuple[str, str]]:
    yield "engine", engine
    era = era_of(engine, version)
    if era != engine:
        yield "era", era
    family = family_of(card)
    if family:
        yield "family", family
        yield "pair", f"{engine} on {family}"
    yield "card", card


def _product(factors: Mapping[str, Mapping[str, float]], names: list[str], rate: str) -> float:
    found = 1.0
    for name in names:
        found *= factors.get(name, {}).get(rate, 1.0)
    return found


def _error(said: Mapping[str, Any], engine: str, family: str, mixed: bool) -> tuple[float, bool]:
    """The band of what was measured, and whether this engine was measured on this family.

    What was not is off by more: half as far again (as a factor) where only the other engines or
    the other cards were, twice as far where neither was.
    """
    error = float(said["errors"]["mixture" if mixed else "dense"])
    pairs = said["measured"]
    if f"{engine} on {family}" in pairs:
        return error, True
    engines, families = (
        zip(*(pair.split(" on ") for pair in pairs), strict=True) if pairs else ((), ())
    )
    known = (engine in engines) + (family in families)
    return float((1 + error) ** (2 - known / 2) - 1), False


def _source(said: Mapping[str, Any], engine: str, card: str, measured: bool) -> str:
    made = f"{said['rows']:,} published measurements to {said['until']}"
    if measured:
        return (
            f"estimate: {made}, {said['measured'][f'{engine} on {family_of(card)}']} of them of "
            f"{engine} on {family_of(card)} cards"
        )
    return f"estimate: {made}, none of {engine} on {card}: general rates, a wide error"
