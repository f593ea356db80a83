"""The class defaults of every config type, shipped as data.

A published config is written as the difference from its type's class defaults (transformers,
configuration_utils.py, to_diff_dict), so an absent key has the value the class gives it. The table
is made by ``tools/extract_class_defaults.py`` and names the release it was made from.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Set
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple


class TypeDefaults(NamedTuple):
    """What a config class knows about itself.

    ``values`` are its raw defaults (None where the class derives the value) under the type's own
    keys, ``names`` maps the standard name of a key to the type's own (``hidden_size`` →
    ``n_embd``; some classes declare the default under the standard one), ``sections`` maps a
    nested config's key to the type it has when it names none, and the values it starts from.
    ``declared`` are the standard names that the class declares as fields of its own.
    """

    values: Mapping[str, Any]
    names: Mapping[str, str]
    sections: Mapping[str, Mapping[str, Any]]
    declared: Set[str] = frozenset()


NO_DEFAULTS = TypeDefaults({}, {}, {})


@cache
def _table() -> tuple[str, dict[str, Any]]:
    text = files("kvplan").joinpath("data/class_defaults.json").read_text(encoding="utf-8")
    data = json.loads(text)
    return data["source"], data["types"]


def source() -> str:
    """The release that the defaults were read from: ``transformers 5.24.0``."""
    return _table()[0]


def of_type(model_type: str) -> TypeDefaults:
    """The defaults of a type; empty for a type that transformers does not have."""
    return _known(model_type) if model_type in _table()[1] else NO_DEFAULTS


@cache
def _known(model_type: str) -> TypeDefaults:
    row = _table()[1][model_type]
    own = row["defaults"]
    # Where a class declares both, the type's own field is set last and holds.
    names = {
        standard: native
        for standard, native in row.get("names", {}).items()
        if not (standard in own and native in own)
    }
    values = {names.get(key, key): value for key, value in own.items()}
    return TypeDefaults(values, names, row.get("sections", {}), names.keys() & own.keys())
