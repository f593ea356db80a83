"""Start-up reports of llama.cpp and ik_llama.cpp: cells, layers, K and V, R and S as printed."""

from __future__ import annotations

import json

import pytest

from tests.engines.aliases import REPORTS
from tests.engines.llamacpp.report_rows import Row, misses, rows

OLLAMA = {
    f"llamacpp-{number:04d}": "a line of Ollama's own scheduler or engine: see tests/engines/ollama"
    for number in (153, 155, 156, 157, 158, 159)
}
REPRODUCED = [row for row in rows("reproduced") if row.id not in OLLAMA]
EXPLAINED = [row for row in rows("explained") if row.id not in OLLAMA]

# Rows that no rule gives, each with its reason.
MISSED: dict[str, str] = {}
# Rows with nothing to hold a rule against.
LEFT_OUT = OLLAMA | {
    "llamacpp-0010": "only an error text",
    "llamacpp-0081": "only an error text",
    "llamacpp-0168": "DeepSeek V4's line of the cache without windows, which has no layer",
    "llamacpp-0218": "only an error text",
}


@pytest.mark.parametrize("row", REPRODUCED + EXPLAINED, ids=lambda row: row.id)
def test_report_is_reproduced(row: Row) -> None:
    """The flags give every figure that is printed of the caches."""
    found = misses(row)

    assert (row.id in MISSED) == bool(found), found


def test_every_row_is_used_or_left_out_with_a_reason() -> None:
    """No row is skipped in silence."""
    lines = (REPORTS / "llamacpp.jsonl").read_text(encoding="utf-8").splitlines()
    used = {row.id for row in REPRODUCED + EXPLAINED}

    assert {json.loads(line)["id"] for line in lines} - used == set(LEFT_OUT)
