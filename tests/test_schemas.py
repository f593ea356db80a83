"""The schemas that ship: each key of an answer is named, and one that is missing is told."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import kvplan

ANSWERS = {
    "one size": lambda: kvplan.size(
        "llama-3.1-8b", prompt=10, output=5, requests=2, shared_prefix=3
    ),
    "two sizes": lambda: kvplan.size(["gpt2", "mamba-2.8b"]),
    "a fit": lambda: kvplan.fit("llama-3.1-8b", gpu="h100", engine="none", price=2),
}
# Names that a question chooses, and values of any type.
OPEN = ("launch",)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every key, of a list's first item alone."""
    items = value.items() if isinstance(value, dict) else enumerate(value[:1])
    for key, inner in items:
        if isinstance(value, dict):
            yield (*path, key)
        if isinstance(inner, dict | list):
            yield from places(inner, (*path, key))


@pytest.mark.parametrize("name", ANSWERS)
def test_no_key_may_be_missing(name: str) -> None:
    """Of what is shipped nothing is optional."""
    answer = ANSWERS[name]().to_dict()
    text = files("kvplan").joinpath(f"data/schemas/{answer['verb']}.json").read_text("utf-8")
    schema = Draft202012Validator(json.loads(text))
    untold = []
    for path in places(answer):
        without = copy.deepcopy(answer)
        inner = without
        for key in path[:-1]:
            inner = inner[key]
        del inner[path[-1]]
        if path[0] not in OPEN and schema.is_valid(without):
            untold.append(path)

    assert schema.is_valid(answer)
    assert [] == untold
