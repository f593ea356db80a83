"""The collected questions, their settled figures, and when an answer agrees with one.

``questions.jsonl`` has one question a line: what was asked, what the asker gave, the settled
figures with their source. A figure's key is the row's id and the figure's path:
``p113.tokens.2``. A settled figure has the digits that it was printed with; an answer agrees when
it rounds to them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

REFERENCE = Path(__file__).parents[1] / "reference"
CONFIGS = REFERENCE / "configs"
THEMES = (
    "startup-fit", "hybrid", "gguf", "parallelism", "kv-dtype", "fraction-semantics", "profiling",
    "weights", "units", "speculative", "multimodal", "offload", "prefix-cache", "calculators",
    "transfer",
    "scheduling",
)  # fmt: skip
Figure = int | float


@cache
def rows() -> dict[str, dict[str, Any]]:
    """The rows of the first tier that have figures, of the themes that fit answers."""
    path = REFERENCE / "questions" / "questions.jsonl"
    found = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return {
        row["id"]: row
        for row in found
        if row["tier"] == 1 and row["theme"] in THEMES and row["answer"].get("numbers")
    }


@cache
def settled() -> dict[str, Figure]:
    """Every settled figure by its key."""
    return {
        f"{name}.{path}": value
        for name, row in rows().items()
        for path, value in _figures(row["answer"]["numbers"])
    }


def _figures(numbers: dict[str, Any], before: str = "") -> Iterator[tuple[str, Figure]]:
    for name, value in numbers.items():
        if isinstance(value, dict):
            yield from _figures(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value


def printed(value: Figure, expected: Figure) -> Figure:
    """A value with as many decimals as the expected figure was printed with."""
    text = repr(expected)
    decimals = len(text.partition(".")[2]) if "." in text and "e" not in text else 0
    return round(value, decimals)
