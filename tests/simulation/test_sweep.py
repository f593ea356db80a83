"""Sweeps: every point once, kept, resumed after a kill, written for others."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import kvplan
from kvplan.cli import run as command
from kvplan.core.errors import BadQuestion
from kvplan.simulation.results import Results, digest
from kvplan.simulation.sweep import sweep

ASKED: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "gpu": "h100-sxm-80gb",
    "requests": 40,
    "prompt": "uniform:100-900",
    "output": 20,
    "time": "constant:10ms",
}
POINTS = 200  # so many that a sweep of them is seen before it ends, however busy the machine is
MANY = f"rate=1:{POINTS}"
COMMAND = ["simulate", "llama-3.1-8b", "--gpu", "h100-sxm-80gb", "--requests", "40",
           "--prompt", "uniform:100-900", "--output", "20", "--time", "constant:10ms"]  # fmt: skip


def without_speed(answer: dict[str, Any]) -> dict[str, Any]:
    """What does not depend on the machine."""
    return {key: value for key, value in answer.items() if key != "simulated_requests_per_s"}


def test_a_point_is_the_simulation_asked_there() -> None:
    found = sweep(ASKED, ["rate=5,50", "output=10,20"], jobs=1)
    alone = kvplan.simulate(**ASKED | {"rate": 50.0, "output": "10"}).to_dict()

    assert [{"rate": 5.0, "output": "10"}, {"rate": 5.0, "output": "20"},
            {"rate": 50.0, "output": "10"}, {"rate": 50.0, "output": "20"},
            ] == [point.at for point in found.points]  # fmt: skip
    assert without_speed(alone) == without_speed(found.points[2].answer)


def test_all_cores_give_what_one_gives() -> None:
    """Whoever runs a point, it is the same."""
    one, all_ = (sweep(ASKED, ["rate=5:8"], jobs=jobs) for jobs in (1, 2))

    assert [without_speed(p.answer) for p in one.points] == [
        without_speed(p.answer) for p in all_.points
    ]


def test_a_point_that_cannot_be_answered_does_not_stop_the_others() -> None:
    """A card that is too small is an error in its row."""
    found = sweep(ASKED | {"rate": 5.0, "model": "qwen3-32b"}, ["gpu=rtx-4090,h200"], jobs=1)

    assert [False, True] == [point.is_answered for point in found.points]
    assert "message" in found.points[0].answer["error"]


def test_the_pool_is_full_from_where_it_preempts() -> None:
    """The least pool of those asked in which fewer than a hundredth give way is not full."""
    asked = ASKED | {"concurrency": 32, "prompt": 500, "output": 300, "max_model_len": "2048",
                     "requests": 64}  # fmt: skip
    found = sweep(asked, ["pool=8GiB,2GiB,1GiB"], jobs=1)

    assert {"kv_pool": "2GiB"} == found.full_from


def test_finished_points_are_not_run_again(tmp_path: Path) -> None:
    """The second time all are there; a different question finds none of them."""
    first = sweep(ASKED, ["rate=5,6"], results=tmp_path, jobs=1)
    times = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    second = sweep(ASKED, ["rate=5:7"], results=tmp_path, jobs=1)
    other = sweep(ASKED | {"seed": 1}, ["rate=5,6"], results=tmp_path, jobs=1)

    assert (0, 2, 0) == (first.resumed, second.resumed, other.resumed)
    assert times == {path: path.stat().st_mtime_ns for path in times}
    assert [p.answer for p in first.points] == [p.answer for p in second.points[:2]]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"key": "other", "answer": {}}', '{"key": 5}'])
def test_a_broken_file_is_run_again(tmp_path: Path, text: str) -> None:
    """A file that is no finished point is as if it were not there."""
    key = digest(ASKED)
    (tmp_path / f"{key}.json").write_text(text)
    kept = Results(tmp_path)

    assert kept.find(key) is None
    kept.save(key, {}, {"a": 1})
    assert {"a": 1} == kept.find(key)
    assert [f"{key}.json"] == [path.name for path in tmp_path.iterdir()]


def test_a_trace_that_changed_is_another_question(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text("one")
    first = digest({"trace": str(path)})
    path.write_text("three")

    assert first != digest({"trace": str(path)})


def start(folder: Path) -> subprocess.Popen[bytes]:
    """A sweep of many points in a process group of its own."""
    words = [sys.executable, "-m", "kvplan", *COMMAND, "--sweep", MANY, "--jobs", "2",
             "--results", str(folder)]  # fmt: skip
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        words, env=env, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def test_a_source_that_was_away_is_asked_again(tmp_path: Path) -> None:
    """Its error is no answer to keep; that of a bad question is."""
    for code, is_kept in (("source_unreachable", False), ("bad_value", True)):
        Results(tmp_path).save(code, {"rate": 1.0}, {"error": {"code": code, "message": "…"}})
        assert is_kept == (Results(tmp_path).find(code) is not None)


def test_a_table_of_times_that_changed_is_another_question(tmp_path: Path) -> None:
    table = tmp_path / "steps.csv"
    table.write_text("a")
    before = digest({"time": str(table)})
    table.write_text("a longer one")

    assert before != digest({"time": str(table)})


def test_a_killed_sweep_goes_on_with_nothing_lost_or_done_twice(tmp_path: Path) -> None:
    """Killed without a word after some points; they stay as they are, and the rest is run."""
    folder = tmp_path / "points"
    process = start(folder)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        if folder.is_dir() and len(list(folder.glob("*.json"))) >= 3:
            break
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    before = {path: path.stat().st_mtime_ns for path in folder.glob("*.json")}
    for path in before:
        json.loads(path.read_text())

    asked = ASKED
    found = sweep(asked, [MANY], results=folder, jobs=2)

    assert 3 <= len(before) < POINTS, "it ended before it was killed"
    assert len(before) == found.resumed
    assert before == {path: path.stat().st_mtime_ns for path in before}
    assert POINTS == len(list(folder.glob("*.json"))) == len(found.points)
    fresh = sweep(asked, [MANY], jobs=1)
    assert [without_speed(p.answer) for p in fresh.points] == [
        without_speed(p.answer) for p in found.points
    ]


def test_a_sweep_is_a_table_a_plot_and_parquet(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import pyarrow.parquet as pq

    for ending in ("parquet", "png", "csv"):
        path = tmp_path / f"sweep.{ending}"
        words = [*COMMAND, "--sweep", "rate=5,50", "--jobs", "1", "-o", str(path)]
        assert 0 == command(words)
        assert path.stat().st_size > 200
    table = pq.read_table(tmp_path / "sweep.parquet")
    assert [5.0, 50.0] == table.column("at.rate").to_pylist()
    assert "ttft_s.p95" in table.column_names
    capsys.readouterr()
    assert 0 == command([*COMMAND, "--sweep", "rate=5,50", "--jobs", "1"])
    assert "2 points" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"backend": "slurm"}, "There is no backend 'slurm'"),
        ({"jobs": 0}, "--jobs 0"),
    ],
)
def test_a_wrong_way_to_run_is_a_sentence(how: dict[str, Any], said: str) -> None:
    with pytest.raises(BadQuestion, match=said):
        sweep(ASKED, ["rate=5,50"], **how)
