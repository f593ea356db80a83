"""The settings of TensorRT-LLM's own benchmark, as its build/tuning.py chooses them."""

from __future__ import annotations

import pytest

from tools.speed_bench import settings
from tools.speed_data import data
from tools.speed_rows import Row


def row(prompt: int, output: int, stages: int = 1) -> Row:
    """A published row of maximum throughput with other lengths."""
    found = next(case.row for case in data().cases if case.row.kind == "queued")
    return found._replace(prompt=float(prompt), output=float(output), pp=stages)


@pytest.mark.parametrize(
    ("held", "asked", "batch", "tokens"),
    [
        (5000, row(128, 128), 4096, 8192),
        (447, row(128, 2048), 512, 2048),
        (237, row(1000, 1000), 256, 2048),
        (482, row(2048, 128), 512, 9216),
        (10, row(128, 4096), 64, 2048),
        (44, row(20000, 2000), 64, 20064),
        (1000, row(1000, 1000, stages=2), 512, 2048),
    ],
)
def test_settings(held: int, asked: Row, batch: int, tokens: int) -> None:
    """By what the cache holds and the lengths, in steps of its own, with room for a whole prompt.

    Of a pipeline the batch is one stage's.
    """
    assert (batch, tokens) == settings(held, asked)
