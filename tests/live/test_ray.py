"""Sweeps on a real Ray cluster (make test-ray): a head is started here, and it is stopped again."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kvplan.core.errors import BadValue
from kvplan.simulation.sweep import sweep

pytestmark = pytest.mark.ray

ASKED: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "gpu": "h100-sxm-80gb",
    "requests": 40,
    "prompt": "uniform:100-900",
    "output": 20,
    "time": "constant:10ms",
}


def ray(*words: str) -> None:
    """Ray's own command of this environment."""
    subprocess.run(
        [str(Path(sys.executable).parent / "ray"), *words],
        check=True,
        capture_output=True,
        timeout=180,
    )


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """A head with two processors."""
    ray("start", "--head", "--num-cpus=2", "--port=6399", "--include-dashboard=false",
        "--disable-usage-stats")  # fmt: skip
    try:
        yield
    finally:
        import ray as client

        client.shutdown()
        ray("stop", "--force")


def test_without_a_cluster_there_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """None is started in its place."""
    monkeypatch.delenv("RAY_ADDRESS", raising=False)

    with pytest.raises(BadValue, match="No Ray cluster is running"):
        sweep(ASKED, ["rate=5,50"], backend="ray")


@pytest.mark.filterwarnings("ignore")
def test_a_cluster_gives_what_one_core_gives(
    cluster: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same points, kept by the asker, and resumed from there."""
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:6399")
    here = sweep(ASKED, ["rate=5:10"], jobs=1)
    there = sweep(ASKED, ["rate=5:10"], backend="ray", results=tmp_path)
    again = sweep(ASKED, ["rate=5:10"], backend="ray", results=tmp_path)

    def figures(answer: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in answer.items() if key != "simulated_requests_per_s"}

    assert [figures(p.answer) for p in here.points] == [figures(p.answer) for p in there.points]
    assert 6 == len(list(tmp_path.glob("*.json"))) == again.resumed
