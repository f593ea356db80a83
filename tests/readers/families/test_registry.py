"""The table of families and towers names what is there, and nothing twice."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import pytest

import kvplan
from kvplan.readers.families.base import Family
from kvplan.readers.families.registry import family_of, table, tower_of

ROOT = Path(kvplan.__file__).parent


def rows() -> dict[str, dict[str, dict[str, str]]]:
    text = files("kvplan").joinpath("data/families.json").read_text(encoding="utf-8")
    found: dict[str, dict[str, dict[str, str]]] = json.loads(text)
    return found


@pytest.mark.parametrize("model_type", sorted(table("families")))
def test_families(model_type: str) -> None:
    """Each type leads to a family."""
    assert isinstance(family_of(model_type), Family)


@pytest.mark.parametrize("model_type", sorted(table("towers")))
def test_towers(model_type: str) -> None:
    """Each encoder's type leads to a function."""
    assert callable(tower_of(model_type))


@pytest.mark.parametrize("part", ["families", "towers"])
def test_no_type_is_named_twice(part: str) -> None:
    """A type has one family, whichever module comes first."""
    named = [model_type for types in rows()[part].values() for model_type in types]

    assert sorted(set(named)) == sorted(named)


def test_modules_are_in_order() -> None:
    """Lines are sorted, so that a new one has one place."""
    for part in rows().values():
        assert sorted(part) == list(part)


def test_an_unknown_type_has_none() -> None:
    """What is not in the table is None, and no import is tried."""
    assert family_of("no-such-type") is None
    assert tower_of("no-such-type") is None
