"""The flags of each engine that no table models: which take values, which touch neither memory nor
speed, and what an environment can say in a flag's place.

They are data (``data/engine_flags.json``), each engine's with the source of its names.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from importlib.resources import files
from typing import Any


class Takes(Enum):
    """What follows a flag's name."""

    NOTHING = "switches"
    VALUE = "values"
    PERHAPS = "optional"
    LIST = "lists"


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFlags:
    """What is known of an engine's flags beside those that are modelled.

    ``takes`` has every one by name; ``harmless`` those that touch neither memory nor speed;
    ``model`` those that name the model; ``overrides`` the one that replaces keys of its config;
    ``bare`` the value of one that older releases took without. ``cards`` are multiplied to the
    cards of a start, less those of ``cards_inside`` where its switch is on; ``cards_listed`` has a
    share for each. ``config`` names a file of flags: its keys are flags' names but for
    ``config_keys``, and they replace the line's where ``config_wins``.
    """

    takes: Mapping[str, Takes]
    harmless: frozenset[str]
    model: tuple[str, ...]
    overrides: str
    bare: Mapping[str, str]
    cards: tuple[str, ...]
    cards_inside: Mapping[str, str]
    cards_listed: str
    config: tuple[str, ...]
    config_keys: Mapping[str, str]
    config_wins: bool
    environment: Mapping[str, str]
    environment_prefix: str
    environment_harmless: frozenset[str]


@cache
def known_flags(engine: str) -> KnownFlags:
    """The flags of an engine by its name; none of one that has no command line."""
    row = _rows().get({"ik_llama.cpp": "llama.cpp"}.get(engine, engine), {})
    kinds = [row.get("harmless", {}), row.get("unmodelled", {})]
    return KnownFlags(
        takes={
            name: Takes(takes)
            for kind in kinds
            for takes, names in kind.items()
            for name in names.split()
        },
        harmless=frozenset(name for names in kinds[0].values() for name in names.split()),
        model=tuple(row.get("model", "").split()),
        overrides=row.get("overrides", ""),
        bare=row.get("bare", {}),
        cards=tuple(row.get("cards", "").split()),
        cards_inside=row.get("cards_inside", {}),
        cards_listed=row.get("cards_listed", ""),
        config=tuple(row.get("config", "").split()),
        config_keys=row.get("config_keys", {}),
        config_wins=row.get("config_wins", False),
        environment=row.get("environment", {}),
        environment_prefix=row.get("environment_prefix", ""),
        environment_harmless=frozenset(row.get("environment_harmless", "").split()),
    )


@cache
def _rows() -> dict[str, Any]:
    text = files("kvplan").joinpath("data/engine_flags.json").read_text(encoding="utf-8")
    rows: dict[str, Any] = json.loads(text)
    return rows
