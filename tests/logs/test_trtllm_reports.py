"""Every report of TensorRT-LLM, in the wordings of 2024 and 2025, reads back to its facts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kvplan.core.units import GIB, KIB, MIB
from kvplan.logs.facts import Start
from kvplan.logs.read import read_log
from tests.logs.around import AROUND
from tests.logs.trtllm_wordings import Row, expected, log_of

REPORTS = Path(__file__).parents[1] / "reference" / "reports" / "trtllm.jsonl"
ROWS: list[Row] = [json.loads(line) for line in REPORTS.read_text(encoding="utf-8").splitlines()]
IDS = [row["id"] for row in ROWS]


def said(start: Start | None) -> dict[str, Any]:
    assert start is not None
    assert "tensorrt-llm" == start.engine
    return {fact.name: fact.value for fact in start.facts}


@pytest.mark.parametrize("trial", [False, True], ids=["", "after a trial pool"])
@pytest.mark.parametrize("bracketed", [False, True], ids=["2024", "2025"])
@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_a_report_reads_back(row: Row, bracketed: bool, trial: bool) -> None:
    """The pool that is said last counts; the trial run's is said before it."""
    if trial and not row["max_tokens"]:
        return
    start = read_log(log_of(row, bracketed=bracketed, trial=trial).encode()).start
    wanted = expected(row)
    if trial and "kv_bytes" not in wanted:  # no size of its own after the trial's
        wanted.pop("num_gpu_blocks", None)

    found = said(start)
    assert wanted == {name: found.get(name) for name in wanted}
    assert row["version"] == (start.version if start else None)


@pytest.mark.parametrize("around", AROUND)
def test_what_is_around_lines_changes_nothing(around: str) -> None:
    """Services, quotes, notebooks, locales."""
    row = next(row for row in ROWS if row["id"] == "trtllm-0004")
    wanted = expected(row)

    found = said(read_log(AROUND[around](log_of(row, bracketed=False)).encode()).start)
    assert wanted == {name: found.get(name) for name in wanted}


VARIANTS = {
    "Using 10718 tokens in paged KV cache.": {"kv_tokens": 10718},
    "Allocate 69524783104 bytes for k/v cache.": {"kv_bytes": 69524783104},
    "[MemUsageChange] Allocated 43.29 MB GPU memory for runtime buffers.": {
        "runtime_buffer_bytes": round(43.29 * MIB)
    },
    "[MemUsageChange] Allocated 988.04 KB GPU memory for runtime buffers.": {
        "runtime_buffer_bytes": round(988.04 * KIB)
    },
    "[MemUsageChange] Allocated 4.35 GB GPU memory for decoder.": {
        "decoder_bytes": round(4.35 * GIB)
    },
    "Max KV cache pages per sequence: 2048": {"blocks_per_sequence": 2048},
    "Max KV cache blocks per sequence: 65 [window size=2051], tokens per block=32, primary "
    "blocks=116617, secondary blocks=0": {
        "blocks_per_sequence": 65, "window_tokens": 2051, "block_size": 32,
        "num_gpu_blocks": 116617, "num_host_blocks": 0,
    },
    "[MemUsageChange] Allocated 0.00 GiB for max tokens in paged KV cache (3958272).": {
        "kv_tokens": 3958272, "kv_bytes": None,
    },
}  # fmt: skip


@pytest.mark.parametrize("line", VARIANTS)
def test_lines_of_every_release(line: str) -> None:
    """What one line states; a size of 0.00 GiB states none."""
    found = said(read_log(f"[TensorRT-LLM][INFO] {line}\n".encode()).start)

    assert VARIANTS[line] == {name: found.get(name) for name in VARIANTS[line]}
