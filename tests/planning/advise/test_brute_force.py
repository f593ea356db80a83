"""The winner beside a brute force that shares nothing with the search: ``fit`` asked one start at a
time, and clients in a loop at the estimated speed.

Both judge the mean of a closed loop, by formulas of their own: what is within a tenth of the goal
may be judged otherwise and is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

import kvplan
from kvplan.core.errors import KvplanError
from kvplan.planning.speed import estimate

CARDS = ("l4", "l40s", "h100-sxm-80gb", "h200")
MOST = 8
CLOSE = 0.9
PROMPT, OUTPUT = 3000, 400
CASES: list[tuple[tuple[str, ...], int, float]] = [
    (("Qwen/Qwen3-8B", "Qwen/Qwen3-8B-FP8"), 4, 0.030),
    (("Qwen/Qwen3-8B", "Qwen/Qwen3-8B-FP8"), 60, 0.020),
    (("Qwen/Qwen3-32B", "Qwen/Qwen3-32B-FP8"), 20, 0.060),
    (("Qwen/Qwen3-32B", "Qwen/Qwen3-32B-FP8"), 100, 0.040),
    (("openai/gpt-oss-120b",), 40, 0.025),
]


class Start(NamedTuple):
    """So many copies of one start: its cost and its time per token."""

    said: str
    cost: float
    tpot_s: float


def starts(models: tuple[str, ...], users: int) -> Iterator[Start]:
    """Every card, tensor parallelism, cache format and number of copies that holds the users."""
    for model in models:
        for gpu in CARDS:
            for size in (1, 2, 4, 8):
                for cache in ("auto", "fp8"):
                    yield from _copies(model, gpu, size, cache, users)


def _copies(model: str, gpu: str, size: int, cache: str, users: int) -> Iterator[Start]:
    try:
        asked: dict[str, Any] = {"context": PROMPT + OUTPUT, "concurrency": 1, "offline": True}
        found = kvplan.fit(
            model, gpu=gpu, gpus=size, tensor_parallel_size=size, kv_cache_dtype=cache,
            max_model_len=PROMPT + OUTPUT, **asked,
        )  # fmt: skip
    except KvplanError:
        return
    pace, price = estimate(found.plan), found.cost
    if not found.fits or pace is None or price is None:
        return
    for copies in range(1, MOST // size + 1):
        if found.sequences * copies < users:
            continue
        served = pace.closed_loop(
            prompt=PROMPT, output=OUTPUT, clients=-(-users // copies), capacity=found.sequences
        )
        said = f"{copies} × {size} × {gpu}, {model}, cache {cache}"
        yield Start(said, price.per_gpu_hour * size * copies, served.tpot_s)


@pytest.mark.parametrize(("models", "users", "tpot"), CASES)
def test_no_start_is_cheaper(models: tuple[str, ...], users: int, tpot: float) -> None:
    """Of all that fit holds and the loop finds fast enough, none costs less than the winner."""
    answer = kvplan.advise(
        models[0], users=users, prompt=PROMPT, output=OUTPUT, tpot=f"{tpot * 1e3}ms",
        percentile="p50", gpu=CARDS, max_gpus=MOST, offline=True,
    )  # fmt: skip
    best = answer.best
    meeting = [start for start in starts(models, users) if start.tpot_s <= CLOSE * tpot]
    cheapest = min(meeting, key=lambda start: start.cost, default=None)

    assert best is not None
    assert cheapest is not None
    assert best.outcome is not None
    assert best.outcome.per_hour is not None
    assert best.outcome.per_hour <= cheapest.cost * 1.0001, cheapest.said
