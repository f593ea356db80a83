"""Which family describes a model type, and which tower a nested encoder's type.

The table is data (``data/families.json``): a line a module of this package or of
``kvplan.readers.towers``, with the class or function of each type. A module is imported when a
model of it is read, so that the command starts fast.
"""

from __future__ import annotations

import json
from functools import cache, lru_cache
from importlib import import_module
from importlib.resources import files
from typing import Any


@cache
def table(part: str) -> dict[str, tuple[str, str]]:
    """Module and name by model type, of ``families`` or ``towers``."""
    text = files("kvplan").joinpath("data/families.json").read_text(encoding="utf-8")
    rows: dict[str, dict[str, str]] = json.loads(text)[part]
    return {
        model_type: (f"kvplan.readers.{part}.{module}", name)
        for module, types in rows.items()
        for model_type, name in types.items()
    }


@lru_cache(maxsize=1024)
def family_of(model_type: str) -> Any:
    """The family of a type, or None."""
    found = _found("families", model_type)
    return None if found is None else found()


@lru_cache(maxsize=1024)
def tower_of(model_type: str) -> Any:
    """The tower function of a nested encoder's type, or None."""
    return _found("towers", model_type)


def _found(part: str, model_type: str) -> Any:
    entry = table(part).get(model_type)
    if entry is None:
        return None
    module, name = entry
    return getattr(import_module(module), name)
