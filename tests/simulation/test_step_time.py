"""What a step takes, by who says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from kvplan.core.errors import BadFile, BadValue
from kvplan.simulation.step_time import constant, read_table, table_cost


def test_a_constant_is_every_step() -> None:
    cost = constant(0.01)

    assert [0.01, 0.01] == [cost.seconds([100] * 8), cost.seconds([5], [])]


def test_a_table_is_a_curve_and_a_slope() -> None:
    """10 ms + 1 µs a token of context for one sequence, 14 ms + the same for eight."""
    rows = [(1, 0, 0.010), (1, 1000, 0.011), (8, 0, 0.014), (8, 8000, 0.022)]
    cost = table_cost(rows, "a table")

    assert pytest.approx(0.0105) == cost.seconds([500])
    assert pytest.approx(0.014 + 8 * 2000e-6) == cost.seconds([2000] * 8)
    assert pytest.approx(0.012) == cost.linear_s(1) + 2e-3 == cost.seconds([2000])


def test_a_table_is_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "steps.csv"
    path.write_text("tokens,contexts,seconds\n1,0,0.01\n16,0,0.02\n")
    cost = read_table(path)

    assert pytest.approx(0.02) == cost.linear_s(16)
    assert "2 steps" in cost.source


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tokens,seconds\n1,0.1\n", "Line 2 .* is no measured step"),
        ("tokens,contexts,seconds\n1,0,-1\n", "Line 2"),
        ("tokens,contexts,seconds\n1,0,0.1\n0,0,0.1\n", "Line 3"),
        ("tokens,contexts,seconds\n", "no measured steps"),
    ],
)
def test_a_wrong_table_is_told(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "steps.csv"
    path.write_text(text)

    with pytest.raises(BadFile, match=said):
        read_table(path)


def test_no_such_file() -> None:
    with pytest.raises(BadFile, match="no file that can be read"):
        read_table(Path("/nowhere/steps.csv"))


@pytest.mark.parametrize("seconds", [0.0, -1.0, 4000.0])
def test_a_step_has_a_time(seconds: float) -> None:
    with pytest.raises(BadValue, match="is none"):
        constant(seconds)
