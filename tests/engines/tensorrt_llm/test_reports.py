"""Start-ups of TensorRT-LLM: blocks, tokens and sizes of the pool that their logs state."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from kvplan.core.units import GIB
from kvplan.engines.tensorrt_llm.plan import TensorRTPlan
from kvplan.planning.fit import fit
from tests.engines.aliases import CONFIGS, REPORTS, config_of

ASSUMPTIONS: dict[str, dict[str, Any]] = json.loads(
    (REPORTS / "trtllm_assumptions.json").read_text(encoding="utf-8")
)
LINES = (REPORTS / "trtllm.jsonl").read_text(encoding="utf-8").splitlines()
HALF_DIGIT = 0.005
ARGUMENTS = {
    "tp": "tp_size", "kv_dtype": "kv_cache_dtype", "max_seq_len": "max_seq_len",
    "tokens_per_block": "tokens_per_block", "max_batch_size": "max_batch_size",
    "free_gpu_memory_fraction": "free_gpu_memory_fraction",
}  # fmt: skip
LEFT_OUT = {
    "trtllm-0003": "no pool figure",
    "trtllm-0010": "the document mixes two runs: a 28-layer cache under the name of Llama-2-7B",
}


@dataclass(frozen=True)
class Row:
    """A report and the assumption it was explained with."""

    said: Mapping[str, Any]

    @property
    def id(self) -> str:
        return str(self.said["id"])

    @property
    def flags(self) -> dict[str, Any]:
        found = {flag: self.said[key] for key, flag in ARGUMENTS.items() if self.said.get(key)}
        assumed = ASSUMPTIONS.get(self.id, {}).get("flags", {})
        return found | {flag[2:].replace("-", "_"): value for flag, value in assumed.items()}

    def plan(self, **flags: Any) -> TensorRTPlan:
        assumed = ASSUMPTIONS.get(self.id, {})
        model = CONFIGS / assumed["model"] if "model" in assumed else config_of(self.said["model"])
        found = {"gpu_memory": "200GiB", "weights_bytes": GIB} | self.flags | flags
        answer = fit(
            model,  # type: ignore[arg-type]
            engine="tensorrt-llm",
            engine_version=self.said.get("version"),
            gpus=found.get("tp_size", 1),
            **found,
        )
        assert isinstance(answer.plan, TensorRTPlan)
        return answer.plan


ROWS = [row for row in map(Row, map(json.loads, LINES)) if row.id not in LEFT_OUT]


def misses(row: Row) -> Iterator[str]:
    """Every figure that kvplan does not give."""
    tokens, size = row.said["max_tokens"], row.said["allocated_gib"]
    plan = row.plan(kv_pool=1 << 44, max_tokens=tokens)
    if (
        f"Allocated {size:.2f} GiB for max tokens in paged KV cache ({tokens})"
        not in plan.prints[-1]
    ):
        yield plan.prints[-1]
    if row.said.get("blocks_primary") not in (None, plan.pool.num_blocks):
        yield f"{plan.pool.num_blocks} blocks"
    if size:
        yield from _within(row, "kv_pool", size)
    if row.said.get("available_gib"):
        yield from _within(row, "free_after_load", row.said["available_gib"])


def _within(row: Row, flag: str, figure: float) -> Iterator[str]:
    """Tokens of a figure with two decimals."""
    least, most = (
        row.plan(**{flag: round((figure + side) * GIB)}).pool.kv_tokens or 0
        for side in (-HALF_DIGIT, HALF_DIGIT)
    )
    if not least <= row.said["max_tokens"] <= most:
        yield f"{flag}: {least} to {most}"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_report_is_reproduced(row: Row) -> None:
    """Allocated size, blocks, and the fraction of what was free."""
    assert [] == list(misses(row))
