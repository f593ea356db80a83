"""The real llama.cpp measured: reuse as its own counters have it, growth under its bound.

Run by ``make test-llamacpp``.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import pytest

import kvplan
from benchmarks.growth import VARIANTS, bound, grow
from kvplan.measuring.bandwidth import host_bandwidth
from kvplan.measuring.summary import Run

pytestmark = pytest.mark.llamacpp

WEIGHTS = Path(sys.prefix) / "weights" / "smollm2-135m.gguf"
LENGTHS = (88, 512, 1024, 2048)


@cache
def answer() -> kvplan.MeasureAnswer:
    """Two conversations at once on four slots, and more prefixes than slots."""
    return kvplan.measure(
        embedded=True,
        weights=WEIGHTS,
        prompt=128,
        shared_prefix=96,
        output=8,
        concurrency="1,2",
        requests=4,
        pressure=True,
    )


def runs(**wanted: object) -> list[Run]:
    """Those of some kind."""
    return [run for run in answer().runs if all(getattr(run, k) == v for k, v in wanted.items())]


def test_nothing_fails_and_lengths_are_exact() -> None:
    """Every request is answered; its prompt has the tokens that were asked for."""
    assert {} == answer().failures
    assert [(r.asked_prompt_tokens, 8 * r.requests) for r in answer().runs] == [
        (r.prompt_tokens, r.output_tokens) for r in answer().runs
    ]


def test_reused_tokens_are_the_servers_own() -> None:
    """What the replies say is what the server's counter gained, in every run."""
    assert [run.server_cached_tokens for run in answer().runs] == [
        run.cached_tokens for run in answer().runs
    ]


def test_cold_and_warm_are_apart() -> None:
    """Prompts that nobody sent before reuse next to nothing, the same again all of it."""
    fresh = [*runs(prefix="unique"), *runs(prefix="cold")]
    warm = runs(prefix="warm", reuse=True, pressure=False)
    off = runs(prefix="warm", reuse=False)

    assert all((run.cached_tokens or 0) <= 2 * run.requests for run in fresh)
    assert all(96 * run.requests <= (run.cached_tokens or 0) for run in warm)
    assert [0, 0] == [run.cached_tokens for run in off]
    assert all((one.ttft_s["p50"] or 0) < (other.ttft_s["p50"] or 0)
               for one, other in zip(warm, off, strict=True))  # fmt: skip


def test_slots_lose_prefixes_that_are_too_many() -> None:
    """Six prefixes on four slots: sent again in their order, each is gone."""
    (again,) = runs(prefix="warm", pressure=True)

    assert (6, 6) == (again.distinct_prefixes, again.missed_requests)


def test_predictions_stand_beside() -> None:
    """Reuse as predicted; no decode step is faster than its bound."""
    rows = answer().differences

    assert {"cached_tokens", "decode_step_s", "memory_bytes"} <= {row.name for row in rows}
    assert all((row.ratio or 0) > 1 for row in rows if row.kind == "bound")
    assert all(row.ratio == 1 for row in rows if row.name == "cached_tokens")


@pytest.mark.parametrize("variant", VARIANTS[:2], ids=lambda variant: variant.name)
def test_growth_is_under_its_bound_and_two_lengths_predict_it(variant: object) -> None:
    """A token's time against the context: never below the bound, the others within 15%."""
    found = grow(WEIGHTS, variant, lengths=LENGTHS, calibrated_on=(88, 2048), rounds=4)  # type: ignore[arg-type]
    rate = host_bandwidth()

    assert all(bound(WEIGHTS, found.variant, rate, p.context) < p.seconds for p in found.points)
    assert found.worst <= 0.15


def test_windows_promise_no_reuse() -> None:
    """A model of windows goes back to a checkpoint only: its reuse is an estimate."""
    gemma = kvplan.measure(
        embedded=True, weights=WEIGHTS.with_name("gemma-3-270m.gguf"), prompt=64, output=4,
        concurrency=1, requests=2, prefix="on",
    )  # fmt: skip
    (row,) = (row for row in gemma.differences if row.name == "cached_tokens")

    assert "estimate" == row.kind
    assert row.ratio == 1 or "windows or states that cannot go back" in row.why
