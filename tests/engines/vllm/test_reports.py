"""Real start-ups with the pool that their logs state: tokens, blocks and concurrency equal."""

from __future__ import annotations

import pytest

from tests.engines.vllm.report_rows import Row, misses, rows

REPRODUCED = rows("reproduced")
EXPLAINED = rows("explained")

# Rows that no rule gives, each with its reason. There are none today.
MISSED: dict[str, str] = {}


@pytest.mark.parametrize("row", REPRODUCED + EXPLAINED, ids=lambda row: row.id)
def test_report_is_reproduced(row: Row) -> None:
    """One block count inside the stated pool gives every printed figure."""
    found = misses(row)

    assert bool(found) == (row.id in MISSED), found


def test_what_is_assumed_is_said() -> None:
    """Every explained row but fine-tunes of known shapes states its assumption."""
    silent = [row.id for row in EXPLAINED if not row.assumed]

    assert silent == [
        "vllm-0010", "vllm-0016", "vllm-0017", "vllm-0018", "vllm-0069", "vllm-0186", "vllm-0189",
    ]  # fmt: skip
