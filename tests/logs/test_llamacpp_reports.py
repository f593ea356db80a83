"""Every report of llama.cpp and its forks, written as its build's log, reads back to its facts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kvplan.logs.facts import Start
from kvplan.logs.read import read_log
from tests.logs.around import AROUND
from tests.logs.llamacpp_wordings import Row, expected, log_of

REPORTS = Path(__file__).parents[1] / "reference" / "reports" / "llamacpp.jsonl"
ROWS: list[Row] = [json.loads(line) for line in REPORTS.read_text(encoding="utf-8").splitlines()]
SAYING = [row for row in ROWS if expected(row)]


def said(start: Start | None) -> dict[tuple[str, str | None], Any]:
    assert start is not None
    return {(fact.name, fact.rank): fact.value for fact in start.facts}


@pytest.mark.parametrize("row", SAYING, ids=[row["id"] for row in SAYING])
def test_a_report_reads_back(row: Row) -> None:
    """The log of a run states the facts that the run had, a device at a time."""
    start = read_log(log_of(row).encode()).start
    wanted = expected(row)

    found = said(start)
    assert wanted == {key: found.get(key) for key in wanted}


def test_every_report_says_something() -> None:
    """What is left out: Ollama's estimates, which test_ollama has, and reports without a line."""
    silent = {row["id"]: row for row in ROWS if row not in SAYING}

    assert not [i for i, row in silent.items() if row["kv_self_size_mib"] or row["kv_buffer_mib"]]
    assert 9 >= len(silent)


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("row", SAYING[::9], ids=[row["id"] for row in SAYING[::9]])
def test_what_is_around_lines_changes_nothing(row: Row, around: str) -> None:
    """Stamps, colours, services, quotes and locales."""
    start = read_log(AROUND[around](log_of(row)).encode()).start
    wanted = expected(row)

    found = said(start)
    assert wanted == {key: found.get(key) for key in wanted}
