"""Start-up reports against plans with the stated pool: one block count has to give every figure.

A pool is printed with two decimals, so it is an interval of 0.01 GiB; of some rows the printed pool
is another rank's than the one that binds, and their figures may be below the prediction.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from kvplan.core.device import Device
from kvplan.core.errors import KvplanError
from kvplan.core.model import Model
from kvplan.core.units import GIB
from kvplan.engines.base import Asked, Node
from kvplan.engines.registry import engine_of
from kvplan.engines.vllm.plan import VllmPlan
from kvplan.engines.vllm.pool import printed
from kvplan.engines.vllm.rules import NEWEST, rules_of
from kvplan.readers.devices import find_device
from kvplan.readers.hf_config import read_config

REFERENCE = Path(__file__).parents[2] / "reference"
CONFIGS = REFERENCE / "configs"
HALF = GIB // 200  # what two decimals of a GiB leave open to each side


@dataclass(frozen=True)
class Row:
    """A report, and what has to be assumed beside it."""

    report: Mapping[str, Any]
    assumed: Mapping[str, Any]

    @property
    def id(self) -> str:
        """Its id."""
        return str(self.report["id"])

    @property
    def status(self) -> str:
        """The verdict of an independent reproduction."""
        return str(self.report["check"]["status"])


@cache
def assumptions() -> dict[str, dict[str, Any]]:
    """What is assumed of each row beside it."""
    path = REFERENCE / "reports" / "vllm_assumptions.json"
    found: dict[str, dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return found


def rows(*statuses: str) -> list[Row]:
    """The rows whose check has one of these verdicts."""
    found = []
    for name in ("vllm.jsonl", "vllm_campaign.jsonl"):
        for line in (REFERENCE / "reports" / name).read_text(encoding="utf-8").splitlines():
            report = json.loads(line)
            if report["check"]["status"] in statuses:
                found.append(Row(report, assumptions().get(report["id"], {})))
    return found


@cache
def _aliases() -> dict[str, str]:
    with (CONFIGS / "aliases.tsv").open(encoding="utf-8") as file:
        return {row["model"]: row["file"] for row in csv.DictReader(file, delimiter="\t")}


@cache
def model_of(name: str, overrides: str = "") -> Model:
    """The model of a report's name: a config of that id, or the one it is an alias of."""
    file = _aliases().get(name, f"{name.replace('/', '--')}.json")
    raw = json.loads((CONFIGS / file).read_text(encoding="utf-8"))
    return read_config({**raw, **json.loads(overrides or "{}")}, name=name)


def device_of(row: Row) -> Device:
    """The row's device; one that is not known is taken for a card of 80 GB."""
    text = str(row.assumed.get("gpu") or row.report.get("gpu") or "")
    for name in (text, re.sub(r"\s*\(.*\)|NVIDIA ", "", text), "h100-sxm-80gb"):
        try:
            return find_device(name)[0]
        except KvplanError:
            continue
    raise AssertionError


FLAGS = {
    "tp": "--tensor-parallel-size",
    "pp": "--pipeline-parallel-size",
    "kv_cache_dtype": "--kv-cache-dtype",
    "max_model_len": "--max-model-len",
    "max_num_seqs": "--max-num-seqs",
    "max_num_batched_tokens": "--max-num-batched-tokens",
    "block_size": "--block-size",
}


def plan_of(row: Row, pool: int) -> VllmPlan:
    """The plan of a report with a stated pool."""
    report = row.report
    flags = {flag: report[key] for key, flag in FLAGS.items() if report.get(key) is not None}
    if report.get("prefix_caching") is not None:
        on = report["prefix_caching"]
        flags["--enable-prefix-caching" if on else "--no-enable-prefix-caching"] = True
    flags |= row.assumed.get("flags", {})
    flags = {flag: value for flag, value in flags.items() if value is not None}
    engine = engine_of("vllm")
    device = device_of(row)
    asked = Asked(
        context=1,
        version=row.assumed.get("version") or usual_version(report["engine_version"]),
        flags=engine.flags.parse(flags),
        pool_bytes=pool,
        weights_bytes=1,
    )
    node = Node(device=device, gpus=1, memory_bytes=device.memory_bytes or 80 * GIB)
    name = row.assumed.get("model") or report["model"]
    found = engine.plan(model_of(name, json.dumps(row.assumed.get("set", {}))), node, asked)
    assert isinstance(found, VllmPlan)
    return found


def usual_version(text: str | None) -> str | None:
    """The release that a report names, None where it names none."""
    match = re.match(r"\d+\.\d+(\.\d+)?[\w.]*", text or "")
    return match[0] if match else None


def misses(row: Row) -> list[str]:
    """What no block count inside the interval gives; nothing where the row is reproduced."""
    pool = row.assumed.get("available_kv_gib", row.report["available_kv_gib"])
    low = plan_of(row, round(pool * GIB) - HALF)
    high = plan_of(row, round(pool * GIB) + HALF)
    if row.report.get("error") and not row.report.get("kv_tokens"):
        return _error_misses(row, low, high)
    wanted = {
        key: row.assumed.get(key, row.report.get(key))
        for key in ("kv_tokens", "gpu_blocks", "max_concurrency")
    }
    first, last = low.pool.num_blocks or 0, high.pool.num_blocks or 0
    if row.assumed.get("other_rank"):
        first = first * 8 // 10
    rounded = row.assumed.get("rounded", 0.0)
    for blocks in range(first, last + 1):
        figures = figures_of(low, blocks)
        if all(_same(key, value, figures, rounded) for key, value in wanted.items()):
            return []
    return [f"{wanted} not in {figures_of(low, first)} … {figures_of(high, last)}"]


def figures_of(plan: VllmPlan, blocks: int) -> dict[str, float]:
    """What the version prints of so many blocks."""
    found = printed(plan.groups, blocks, plan.request, rules_of(plan.version or NEWEST))
    return {
        "kv_tokens": found.tokens, "gpu_blocks": blocks, "max_concurrency": found.concurrency,
    }  # fmt: skip


def _same(key: str, value: float | None, figures: Mapping[str, float], rounded: float) -> bool:
    if value is None:
        return True
    if rounded:
        return abs(figures[key] / value - 1) <= rounded
    if key == "max_concurrency":
        return f"{figures[key]:.2f}" == f"{value:.2f}"
    return figures[key] == value


def _error_misses(row: Row, low: VllmPlan, high: VllmPlan) -> list[str]:
    """The needed GiB and the estimated length of a start that is refused."""
    said = str(row.report["error"])
    found = []
    for pattern in (r"\(?([\d.]+) GiB KV", r"maximum model length is (\d+)", r"KV cache \((\d+)\)"):
        match = re.search(pattern, said)
        if match:
            theirs = [_said(pattern, plan) for plan in (low, high)]
            least = 0.0 if row.assumed.get("other_rank") else min(theirs)
            if not least <= float(match[1]) <= max(theirs):
                found.append(f"{match[0]}: {theirs}")
    return found


def _said(pattern: str, plan: VllmPlan) -> float:
    match = re.search(pattern, plan.reason or "")
    return float(match[1]) if match else -1.0


def all_misses(*statuses: str) -> Iterator[tuple[Row, list[str]]]:
    """Every row with these verdicts and what it misses."""
    for row in rows(*statuses):
        yield row, misses(row)
