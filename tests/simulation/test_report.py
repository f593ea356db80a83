"""Figures of a run, by hand, and their confidence over seeds."""

from __future__ import annotations

import numpy as np
import pytest

from kvplan.simulation.report import averaged, figures, intervals, spread
from kvplan.simulation.servers.contiguous import ContiguousServer
from tests.simulation.servers.cases import run, traffic


def test_a_run_by_hand() -> None:
    """Two of three are served, one after the other; a step takes a second.

    A: sent 0, first token 1, ends 3.   B: sent 1, first token 4, ends 5.   C is too long.
    """
    work = traffic([(0.0, 10, 3), (1.0, 10, 2), (1.0, 90, 5)])
    server = ContiguousServer(tokens=50, max_len=50, max_running=8, batched_tokens=100)
    found = figures(run(work, server), work)

    assert {"requests": 3, "finished": 2, "rejected": 1, "failed": 0, "duration_s": 5.0} == {
        key: found[key] for key in ("requests", "finished", "rejected", "failed", "duration_s")
    }
    assert 2.0 == found["ttft_s"]["mean"]  # 1 and 3
    assert 1.0 == found["tpot_s"]["p99"]
    assert 3.5 == found["e2e_s"]["p50"]  # 3 and 4
    assert 1.0 == found["queue_s"]["mean"]  # 0 and 2
    assert 1.0 == found["output_tokens_per_s"]  # 5 tokens in 5 s
    assert {"mean": 1.0, "max": 1} == found["running"]
    assert {"mean": 2 / 5, "max": 1} == found["waiting"]
    assert {"mean": 1.0, "peak": 1.0} == found["kv_usage"]


def test_nothing_has_no_spread() -> None:
    assert {"mean": None, "p50": None, "p90": None, "p95": None, "p99": None} == spread(np.empty(0))


def test_counts_are_rounded_and_what_is_missing_is_left_out() -> None:
    """The mean of several runs has the shape of one."""
    runs = [{"n": 1, "t": {"a": 0.5, "b": None}}, {"n": 4, "t": {"a": 1.5, "b": 2.0}}]

    assert {"n": 2, "t": {"a": 1.0, "b": 2.0}} == averaged(runs)


def test_an_interval_is_students() -> None:
    """Mean 2, deviation 1 of three runs: 2 ± 4.303 / √3; what never varies has none."""
    found = intervals([{"x": value, "same": 5, "deep": {"y": -value}} for value in (1.0, 2.0, 3.0)])

    half = 4.303 / 3**0.5
    assert {
        "x": pytest.approx([2 - half, 2 + half]),
        "deep.y": pytest.approx([-2 - half, -2 + half]),
    } == found


def test_the_interval_covers_the_truth() -> None:
    """Of 400 times five draws about 95% contain the mean."""
    rng = np.random.default_rng(1)
    hits = 0
    for _ in range(400):
        low, high = intervals([{"x": float(v)} for v in rng.normal(7.0, 3.0, 5)])["x"]
        hits += low <= 7.0 <= high

    assert 0.92 <= hits / 400 <= 0.98
