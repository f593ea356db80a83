"""Start-ups of SGLang with the pool that their logs state: tokens, sizes, slots, requests equal."""

from __future__ import annotations

import json

import pytest

from kvplan.core.units import GIB
from tests.engines.aliases import REPORTS
from tests.engines.sglang.report_rows import Row, misses, rows

REPRODUCED, EXPLAINED = rows("reproduced"), rows("explained")

# Rows that no rule gives, each with its reason. There are none today.
MISSED: dict[str, str] = {}
# Rows with nothing to hold a rule against.
LEFT_OUT = {
    "sglang-0081": "no model is named; 34 shapes fit",
    "sglang-0089": "no model is named",
    "sglang-0097": "only an error text",
    "sglang-0098": "only an error text",
    "sglang-0099": "only an error text",
    "sglang-0101": "no cache or state line, no fraction",
    "sglang-0102": "no cache or state line, no fraction",
}


@pytest.mark.parametrize("row", REPRODUCED + EXPLAINED, ids=lambda row: row.id)
def test_report_is_reproduced(row: Row) -> None:
    """The stated pool gives the tokens; the tokens give every printed size."""
    found = misses(row)

    assert (row.id in MISSED) == bool(found), found


def test_every_row_is_used_or_left_out_with_a_reason() -> None:
    """No row is skipped in silence."""
    lines = (REPORTS / "sglang.jsonl").read_text(encoding="utf-8").splitlines()
    used = {row.id for row in REPRODUCED + EXPLAINED}

    assert {json.loads(line)["id"] for line in lines} - used == set(LEFT_OUT)


def budget_rows() -> list[Row]:
    """NVIDIA cards whose log has free memory before and after loading, and no cap on tokens."""
    return [
        row
        for row in REPRODUCED + EXPLAINED
        if row.said["load_begin_avail_gb"]
        and row.said["load_weight_end"]
        and (row.said["server_args"] or {}).get("device") == "cuda"
        and not row.flags.get("max_total_tokens")
    ]


@pytest.mark.parametrize("row", budget_rows(), ids=lambda row: row.id)
def test_free_memory_gives_the_tokens(row: Row) -> None:
    """The rule is never below the log, and above by what goes between its two lines: 0.15 GiB."""
    plan = row.plan(
        free_before_load=round(row.said["load_begin_avail_gb"] * GIB),
        free_after_load=round(row.said["load_weight_end"][-1]["avail_mem_gb"] * GIB),
    )
    cells, settings = plan.cells, plan.settings
    cell = cells.full.budget + settings.window_ratio * cells.window.budget
    over = (plan.pools.max_total_tokens - (row.tokens or 0)) * cell / GIB

    assert -0.02 < over < 0.15
