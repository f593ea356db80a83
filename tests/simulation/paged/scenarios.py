"""Scenarios that vLLM 0.32.0's own scheduler was stepped through (tests/reference/vllm_oracle)."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

ORACLE = Path(__file__).parents[2] / "reference" / "vllm_oracle"
FILES = (
    "scheduler_scenarios.jsonl.gz",
    "scheduler_scenarios_hybrid.jsonl.gz",
    "scheduler_scenarios_settings.jsonl.gz",
    "scheduler_scenarios_async.jsonl.gz",
)


@cache
def scenarios(*names: str) -> dict[str, dict[str, Any]]:
    """By their ids."""
    lines = []
    for name in names or FILES:
        with gzip.open(ORACLE / name, "rt", encoding="utf-8") as file:
            lines += file.readlines()
    return {row["id"]: row for row in map(json.loads, lines)}
