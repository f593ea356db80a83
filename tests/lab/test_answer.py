"""The answer of the lab: its figures, its tables, its file forms and its plot."""

from __future__ import annotations

import math

import pytest

from kvplan.cli import lab_tables
from kvplan.cli.table import NONE
from kvplan.core.errors import BadValue
from kvplan.lab.figures import Perplexity
from tests.lab.answers import answer, row


def test_perplexity_is_of_all_tokens() -> None:
    """Passages of one length count alike in the exponent; the ratio is taken passage by passage."""
    full, other = Perplexity(losses=(1.0, 3.0)), Perplexity(losses=(1.1, 3.1))

    assert math.exp(2.0) == full.value
    assert pytest.approx(math.exp(0.1)) == other.ratio(full)
    assert pytest.approx(0.0, abs=1e-12) == other.ratio_spread(full)
    assert None is Perplexity(losses=(1.0,)).spread


def test_derived_figures_of_a_row() -> None:
    """Bytes wherever they are, the rate, the recall, and whether the answer is the same."""
    found = row("disk", 10, device_bytes=1, host_bytes=2, disk_bytes=4, same_tokens=23).to_dict()

    assert (7, 20.0, 0.5, False) == (
        found["measured_bytes"],
        found["tokens_per_s"],
        found["recall"],
        found["identical_output"],
    )


def test_the_table_shows_equal_and_unequal_bytes() -> None:
    """= where the prediction is what was measured, ≠ where it is not; no figure is a dash."""
    caches = lab_tables.tables(answer())[0].rows

    assert ["=", "=", "≠"] == [cells[3] for cells in caches]
    assert [NONE, NONE] == [caches[1][6], caches[1][7]]
    assert ["identical", "identical", "3 tokens"] == [cells[-1] for cells in caches]


def test_every_table_has_its_rows() -> None:
    """Caches, quality, the batch, what is lost, what compiles; none where nothing was run."""
    tables = lab_tables.tables(answer())

    assert [3, 3, 2, 1, 1] == [len(table.rows) for table in tables]
    assert all(
        len(cells) == len(table.columns) == len(table.align)
        for table in tables
        for cells in table.rows
    )


def test_surprises_are_warnings() -> None:
    """Bytes that were not foretold, and an answer that an exact cache lost, are said."""
    told = answer().warnings[1:]

    assert [
        "int2 held 3,000,000 B, not the 2,999,999 foretold.",
        "int2 loses nothing, and parts from full after 3 tokens.",
    ] == list(told)


def test_csv_has_a_line_a_cache() -> None:
    """The columns are the contract's keys; what there is not is empty."""
    columns, lines = lab_tables.records(answer())
    none = dict(zip(columns, lines[1], strict=True))

    assert ("none", 12_564, "") == (none["cache"], none["positions_processed"], none["itl_s"])


def test_the_plot_has_a_point_a_cache_that_keeps_something() -> None:
    """What stands in one place has one label; a cache of nothing has no place."""
    from kvplan.charts.lab import chart

    found = chart(answer(row("full", 100), row("static", 100), row("int2", 10), row("none", 0)))
    layers = found.to_dict()["layer"]

    assert ["full", "static", "int2"] == [p["cache"] for p in layers[0]["data"]["values"]]
    labels = [p["cache"] for layer in layers[1:] for p in layer["data"]["values"]]
    assert ["int2", "full, static"] == labels


def test_a_plot_of_nothing() -> None:
    """Without perplexity a sentence says how to ask for it."""
    from kvplan.charts.lab import chart

    with pytest.raises(BadValue, match="--passages"):
        chart(answer(row("full", 100, perplexity=None)))
