"""The largest rate that meets a goal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import kvplan
from kvplan.cli import run as command
from kvplan.core.errors import BadQuestion
from kvplan.simulation.find_rate import find_rate

# Prompts of 1,000 tokens in steps of 50 ms that take 2,000 tokens: 40 requests/s at most.
ASKED: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "gpu": "h100-sxm-80gb",
    "requests": 200,
    "prompt": 1000,
    "output": 1,
    "arrivals": "constant",
    "time": "constant:50ms",
    "max_num_batched_tokens": "2000",
}


@pytest.mark.parametrize("begin", [1.0, 300.0])
def test_the_rate_is_what_the_steps_can_take(begin: float) -> None:
    """Below 40 a second nobody waits for longer than a step, above it everybody ever longer."""
    found = find_rate(ASKED | {"rate": begin}, ttft="150ms", percentile="p99")

    assert found.rate == pytest.approx(40, rel=0.06)
    assert "ttft_s" == found.missed
    assert found.met


def test_both_goals_hold_at_the_rate_and_one_fails_above() -> None:
    """Every run below the rate meets the goal, every run above it misses it."""
    asked = ASKED | {"output": 50, "prompt": 200, "time": "bound", "requests": 100}
    found = find_rate(asked, ttft="1s", tpot="8ms", percentile="p95")
    assert found.rate is not None

    for rate, answer in found.runs:
        assert (found.goal.missed(answer) is None) == (rate <= found.rate)
    assert found.best is not None
    assert found.best["tpot_s"]["p95"] <= 0.008
    asked["requests"] = found.best["requests"]
    again = kvplan.simulate(**asked, rate=found.rate).figures()
    assert again["tpot_s"]["p95"] == found.best["tpot_s"]["p95"]


def test_no_more_is_found_than_is_served() -> None:
    """A goal that a queue of any length meets: 40 a second are answered, however many come."""
    found = find_rate(ASKED | {"output": 4, "max_num_seqs": "8"}, tpot="1s")

    assert found.rate == pytest.approx(40, rel=0.1)
    assert "backlog" == found.missed


def test_a_short_trace_says_that_it_is_a_burst(tmp_path: Path) -> None:
    """Ten requests within a second, each answered in two: no rate was told."""
    trace = tmp_path / "ten.csv"
    rows = "".join(f"{i / 10},100,40\n" for i in range(10))
    trace.write_text(f"timestamp,prompt,output\n{rows}", encoding="utf-8")
    asked = {name: ASKED[name] for name in ("model", "gpu", "time")} | {"trace": str(trace)}

    found = find_rate(asked, ttft="10s")

    assert found.rate is not None
    assert "a burst of so many" in found.warnings[-1]


def test_no_rate_meets_a_goal_below_a_step() -> None:
    """A step takes 50 ms: the answer is no, and the exit status says so."""
    found = find_rate(ASKED, ttft="40ms")

    assert (None, False) == (found.rate, found.met)
    flags = ["--gpu", "h100-sxm-80gb", "--requests", "20", "--time", "constant:50ms"]
    assert 1 == command(["simulate", "llama-3.1-8b", *flags, "--find-rate", "--ttft", "40ms"])


def test_the_search_is_a_table_a_plot_and_parquet(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A row a rate; a viewer's trace needs a single run."""
    import pyarrow.parquet as pq

    words = ["simulate", "llama-3.1-8b", "--gpu", "h100-sxm-80gb", "--requests", "20", "--time",
             "constant:50ms", "--find-rate", "--ttft", "1s"]  # fmt: skip
    for ending in ("parquet", "png"):
        assert 0 == command([*words, "-o", str(tmp_path / f"rates.{ending}")])
    table = pq.read_table(tmp_path / "rates.parquet")

    assert {"rate", "missed", "ttft_s.p95", "preemption_rate"} <= set(table.column_names)
    assert 2 == command([*words, "-o", str(tmp_path / "rates.trace.json")])
    assert "no single run" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("goal", "changed", "said"),
    [
        ({}, {}, "needs a goal"),
        ({"ttft": "soon"}, {}, "--ttft"),
        ({"ttft": "1s", "percentile": "p42"}, {}, "--percentile"),
        ({"ttft": "1s"}, {"concurrency": 4}, "no rate to find"),
    ],
)
def test_a_wrong_goal_is_a_sentence(
    goal: dict[str, Any], changed: dict[str, Any], said: str
) -> None:
    with pytest.raises(BadQuestion, match=said):
        find_rate(ASKED | changed, **goal)
