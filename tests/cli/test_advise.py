"""What ``kvplan advise`` prints and writes."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from kvplan.cli import run

ASK = ["advise", "llama-3.1-8b", "--users", "4", "--context", "8k", "--gpu", "l40s,gb10"]


def test_csv_has_a_row_an_option(tmp_path: Path) -> None:
    """The contract's figures as columns, nothing where there is none."""
    path = tmp_path / "options.csv"
    run([*ASK, "-o", str(path)])
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))

    assert ["l40s", "gb10"] == [row["gpu"] for row in rows]
    assert "" == rows[0]["why_not"]
    assert "" == rows[1]["cost_per_hour"]
    assert float(rows[0]["tpot_s"]) < float(rows[1]["tpot_s"])


def test_the_plot_marks_goal_and_frontier(tmp_path: Path) -> None:
    """Cost against time per token; a page of its own opens without a network."""
    path = tmp_path / "frontier.svg"
    run([*ASK, "--tpot", "50ms", "-o", str(path)])
    text = path.read_text(encoding="utf-8")

    assert "USD an hour" in text
    assert "time per token (ms)" in text
    assert "meets the goals" in text


def test_nothing_to_plot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a price there is no cost to plot."""
    words = [*ASK[:-1], "gb10", "-o", str(tmp_path / "x.svg")]

    assert 2 == run(words)
    assert "nothing to plot" in capsys.readouterr().err


def test_how_the_choice_was_made(capsys: pytest.CaptureFixture[str]) -> None:
    """The step, the prompt, the price with its source."""
    run([*ASK, "--explain"])
    said = capsys.readouterr().out

    for part in ("A decode step of", "adds", "So prompts take", "An hour of one card: Nebius"):
        assert part in said


def test_a_manifest_beside_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The manifest goes to the file, what was written to standard error alone."""
    path = tmp_path / "deploy.yaml"
    run([*ASK, "-o", str(path), "--json"])
    said = capsys.readouterr()

    assert said.out.startswith('{"kvplan"')
    assert f"wrote {path}" in said.err
    assert "kind: Deployment" in path.read_text(encoding="utf-8")
