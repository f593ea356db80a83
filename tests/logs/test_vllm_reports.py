"""Every report of vLLM, written as its version's log, reads back to the same facts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kvplan.core.units import GIB
from kvplan.core.version import Version
from kvplan.logs.read import read_log
from tests.logs.vllm_wordings import FIGURES, SIZES, Row, era, log_of

REPORTS = Path(__file__).parents[1] / "reference" / "reports"
# Of a report without a version each wording is tried that would print what it states.
VERSIONS = ("0.6.6", "0.8.5", "0.10.1", "0.12.0", "0.20.0", "0.28.0")
# Fields that an era prints only beside others, or not at all.
TOGETHER = ("activation_peak_gib", "non_torch_gib", "weights_gib")


def rows(name: str) -> list[Row]:
    empty = dict.fromkeys((*SIZES, *FIGURES, "error"))
    lines = (REPORTS / name).read_text(encoding="utf-8").splitlines()
    found = [empty | json.loads(line) for line in lines]
    for row in found:
        row["total_gpu_gib"] = row["total_gpu_gib"] or row.get("gpu_total_gib")
        row["max_concurrency_tokens"] = row["max_concurrency_tokens"] or row["max_model_len"]
    return found


CASES = [
    (row, version)
    for row in [*rows("vllm.jsonl"), *rows("vllm_campaign.jsonl")]
    for version in (row["engine_version"].split("/") if row.get("engine_version") else VERSIONS)
]


def expected(row: Row, said: str) -> Mapping[str, Any]:
    """The facts that the era's lines state."""
    old = era(said) < Version.parse("0.8.0")
    parts = [row[name] for name in TOGETHER]
    unsaid = set()
    if None in parts or (old and row["available_kv_gib"] is None):
        unsaid |= {"activation_peak_gib", "non_torch_gib"}
        if old:
            unsaid.add("available_kv_gib")
    if row["gpu_memory_utilization"] is None:
        unsaid.add("total_gpu_gib")
    if old:
        unsaid.add("kv_tokens")
    if row["max_concurrency"] is None:
        unsaid.add("max_concurrency_tokens")
    if row["error"]:
        unsaid |= {"kv_tokens", "available_kv_gib", "max_model_len"}
    wanted = {
        SIZES[n]: round(row[n] * GIB) for n in SIZES if row[n] is not None and n not in unsaid
    }
    return wanted | {FIGURES[n]: row[n] for n in FIGURES if row[n] is not None and n not in unsaid}


@pytest.mark.parametrize(("row", "said"), CASES, ids=[f"{r['id']}-{v}" for r, v in CASES])
def test_a_report_reads_back(row: Row, said: str) -> None:
    """The log of a run states the facts that the run had."""
    start = read_log(log_of(row, said)).start
    wanted = expected(row, said)

    assert start is not None
    found = {fact.name: fact.value for fact in start.facts if fact.name in wanted}
    assert ("vllm", said, wanted) == (start.engine, start.version, found)
