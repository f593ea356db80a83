"""What two prompts have in common behind a difference, and the order that puts it first."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kvplan
from kvplan.simulation.prefix.alignment import Landmarks, Run, windows
from kvplan.simulation.prefix.reading import read_prompts
from kvplan.simulation.prefix.reorder import reordered

LONG, OTHER = list(range(100, 160)), list(range(500, 540))


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ([1, *LONG], [2, *LONG], [Run(1, 1, 60)]),
        ([1, *LONG], [2, 3, 4, *LONG], [Run(1, 3, 60)]),
        (LONG, [*LONG[:30], 7, *LONG[30:]], [Run(0, 0, 30), Run(30, 31, 30)]),
        ([*LONG, *OTHER], [*OTHER, *LONG], [Run(60, 0, 40)]),
        ([*OTHER, 1, *LONG], [*OTHER, *LONG], [Run(0, 0, 40), Run(41, 40, 60)]),
        (LONG, OTHER, []),
        (LONG[:7], LONG[:7], []),
    ],
)
def test_runs(a: list[int], b: list[int], expected: list[Run]) -> None:
    """Of 8 units or more, in the same order in both."""
    assert expected == Landmarks(np.array(a), 8).align(np.array(b))


UNITS = st.lists(st.integers(0, 2), max_size=60)


@settings(deadline=None)
@given(UNITS, UNITS, st.sampled_from([1, 2, 4, 8]))
def test_runs_are_equal_and_rise(a: list[int], b: list[int], span: int) -> None:
    """Whatever the prompts are."""
    one, other = np.array(a, np.int64), np.array(b, np.int64)
    ends = 0, 0
    for run in Landmarks(one, span).align(other):
        assert run.length >= span
        assert ends <= (run.a, run.b)
        assert ends[0] <= run.a
        assert ends[1] <= run.b
        assert a[run.a : run.a + run.length] == b[run.b : run.b + run.length]
        ends = run.a + run.length, run.b + run.length


@settings(deadline=None)
@given(UNITS, st.sampled_from([1, 2, 4, 8, 16]))
def test_equal_windows_have_equal_hashes(units: list[int], span: int) -> None:
    """And each place that is far enough from the end has one."""
    hashes = windows(np.array(units, np.int64), span).tolist()
    names: dict[tuple[int, ...], int] = {}

    assert max(0, len(units) - span + 1) == len(hashes)
    for place, value in enumerate(hashes):
        assert value == names.setdefault(tuple(units[place : place + span]), value)


def test_the_other_order_by_hand() -> None:
    """What most of a family share comes first, in its order; the rest follows as it stood."""
    prompts = read_prompts([[1, *LONG, 2, *OTHER, 3], [4, 5, *LONG, 6, *OTHER], [7, *OTHER, 8]])
    other = reordered(prompts, [(1, 0), (2, 0)])

    assert other is not None
    assert [
        [*LONG, *OTHER, 1, 2, 3],
        [*LONG, *OTHER, 4, 5, 6],
        [*OTHER, 7, 8],
    ] == [row.units.tolist() for row in other.rows]


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=120), min_size=2, max_size=5))
def test_the_other_order_has_the_same_units(made: list[list[int]]) -> None:
    """Nothing is lost and nothing added."""
    prompts = read_prompts(made)
    families = kvplan.prefix(made).partings.families
    other = reordered(prompts, families) or prompts

    assert [sorted(row) for row in made] == [sorted(row.units.tolist()) for row in other.rows]
