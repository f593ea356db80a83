"""Answers of measure and of compare, of a server that caches."""

from __future__ import annotations

from tempfile import TemporaryDirectory

import kvplan
from kvplan.measuring.compare import CompareAnswer, compare
from kvplan.measuring.folder import write
from tests.measuring.caching_server import Caching, caching


def measured(step_s: float = 0.002) -> kvplan.MeasureAnswer:
    """Two lengths, everything on, a request that fails."""
    with caching(Caching(step_s=step_s, fails=lambda n: n == 7)) as made:
        return kvplan.measure(
            made.address, prompt="32,48", output=4, concurrency="1", requests=2,
            gpu="h100", predict_from="llama-3.1-8b",
        )  # fmt: skip


def compared() -> CompareAnswer:
    """Two measurements."""
    with TemporaryDirectory() as one, TemporaryDirectory() as other:
        write(measured(), one)
        write(measured(0.004), other)
        return compare(one, other)
