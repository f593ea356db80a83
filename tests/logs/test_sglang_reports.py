"""Every report of SGLang, in the wordings of 2025 and of 2026, reads back to its facts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kvplan.logs.facts import Start
from kvplan.logs.read import read_log
from tests.logs.around import AROUND
from tests.logs.sglang_wordings import Row, expected, log_of

REPORTS = Path(__file__).parents[1] / "reference" / "reports" / "sglang.jsonl"
ROWS: list[Row] = [json.loads(line) for line in REPORTS.read_text(encoding="utf-8").splitlines()]
SAYING = [row for row in ROWS if expected(row)]
IDS = [row["id"] for row in SAYING]


def said(start: Start | None) -> dict[str, Any]:
    assert start is not None
    assert "sglang" == start.engine
    return {fact.name: fact.value for fact in start.facts}


@pytest.mark.parametrize("new", [False, True], ids=["2025", "2026"])
@pytest.mark.parametrize("row", SAYING, ids=IDS)
def test_a_report_reads_back(row: Row, new: bool) -> None:
    """Pools of windows, full layers, states and drafts, by the order of their lines."""
    wanted = expected(row)

    found = said(read_log(log_of(row, new=new).encode()).start)
    assert wanted == {name: found.get(name) for name in wanted}


@pytest.mark.parametrize("row", SAYING[::5], ids=IDS[::5])
def test_ranks_are_kept_apart(row: Row) -> None:
    """Lines of several ranks between each other: each has its own target, window and draft."""
    ranks = ("DP0 TP0 EP0", "DP0 TP1 EP1")
    first, second = (log_of(row, rank).splitlines() for rank in ranks)
    mixed = [line for pair in zip(first, second, strict=True) for line in pair]
    if row.get("server_args"):
        mixed = mixed[1:]

    start = read_log("\n".join(mixed).encode()).start
    assert start is not None
    wanted = expected(row)
    for name, value in wanted.items():
        assert [value, value] == [fact.value for fact in start.by_rank(name).values()], name


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("row", SAYING[::17], ids=IDS[::17])
def test_what_is_around_lines_changes_nothing(row: Row, around: str) -> None:
    """Services, quotes, notebooks, locales."""
    if around == "2026 stamps":  # llama.cpp's own
        return
    wanted = expected(row)

    found = said(read_log(AROUND[around](log_of(row)).encode()).start)
    assert wanted == {name: found.get(name) for name in wanted}


@pytest.mark.parametrize("row", [row for row in SAYING if row.get("server_args")][::9],
                         ids=lambda row: row["id"])  # fmt: skip
def test_settings_are_flags(row: Row) -> None:
    """What ServerArgs prints, by the flags that ask for it."""
    start = read_log(log_of(row).encode()).start
    assert start is not None
    arguments = row["server_args"]

    for name in ("tp_size", "mem_fraction_static", "context_length", "max_total_tokens"):
        assert arguments[name] == start.flags.get(f"--{name.replace('_', '-')}")
    asked = arguments["kv_cache_dtype"]
    assert (None if asked == "auto" else asked) == start.flags.get("--kv-cache-dtype")
