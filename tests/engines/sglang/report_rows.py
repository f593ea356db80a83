"""Start-up reports of SGLang: what each row says, and what kvplan says of it.

``--kv-pool`` is the sum of the printed sizes of the target's caches, so the tokens are within what
the printed digits leave open; sizes, slots and requests follow from the tokens and are equal.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from kvplan.core.units import GIB
from kvplan.engines.sglang.plan import SGLangPlan
from kvplan.planning.fit import fit
from tests.engines.aliases import CONFIGS, REPORTS, config_of

ASSUMPTIONS: dict[str, dict[str, Any]] = json.loads(
    (REPORTS / "sglang_assumptions.json").read_text(encoding="utf-8")
)
ARGUMENTS = (
    "context_length", "mem_fraction_static", "max_running_requests", "max_total_tokens",
    "chunked_prefill_size", "page_size", "tp_size", "pp_size", "dp_size", "device",
    "swa_full_tokens_ratio", "mamba_full_memory_ratio", "max_mamba_cache_size", "mamba_ssm_dtype",
    "attention_backend", "speculative_algorithm", "kv_cache_dtype", "cuda_graph_max_bs",
    "disable_cuda_graph", "disable_radix_cache", "enable_dp_attention",
)  # fmt: skip
HALF_DIGIT = 0.005  # of a figure with two decimals
PLENTY = 1 << 44


@dataclass(frozen=True)
class Row:
    """A report and the assumption it was explained with."""

    said: Mapping[str, Any]

    @property
    def id(self) -> str:
        return str(self.said["id"])

    @property
    def assumed(self) -> Mapping[str, Any]:
        return ASSUMPTIONS.get(self.id, {})

    @property
    def model(self) -> Any:
        return CONFIGS / self.assumed["model"] if "model" in self.assumed else self._named

    @property
    def _named(self) -> Any:
        return config_of(self.said["model"])

    @cached_property
    def flags(self) -> dict[str, Any]:
        """The start's arguments, then what the page says beside them, then the assumption."""
        given = self.said["server_args"] or {}
        found = {name: given[name] for name in ARGUMENTS if given.get(name)}
        for key, flag in (("tp", "tp_size"), ("dp", "dp_size")):
            found.setdefault(flag, self.said[key] or 1)
        if self.said["mem_fraction_static"]:
            found.setdefault("mem_fraction_static", self.said["mem_fraction_static"])
        assumed = self.assumed.get("flags", {})
        return found | {flag[2:].replace("-", "_"): value for flag, value in assumed.items()}

    @property
    def page(self) -> int:
        return int(self.flags.get("page_size", 64))

    def plan(self, **flags: Any) -> SGLangPlan:
        """Kvplan's answer with some flags more."""
        found = {"weights_bytes": GIB, "gpu_memory": "64GiB"} | self.flags | flags
        answer = fit(
            self.model,
            engine="sglang",
            engine_version=self.assumed.get("version"),
            gpus=found["tp_size"],
            set=self.assumed.get("set"),
            **found,
        )
        assert isinstance(answer.plan, SGLangPlan)
        return answer.plan

    @property
    def tokens(self) -> int | None:
        lines = self.said["kv_lines"]
        full = lines[1 if self.said["swa_pool"] else 0]["tokens"] if lines else None
        return self.said["max_total_num_tokens"] or full

    @property
    def pool(self) -> tuple[float, float] | None:
        """The target's caches in GiB, and what the digits leave open."""
        if self.said["swa_pool"]:
            return self.said["swa_pool"]["mem_usage_gb"], HALF_DIGIT
        if not self.said["kv_lines"]:
            return None
        line = self.said["kv_lines"][0]
        if line["kv_gb"] is not None:
            return line["kv_gb"], HALF_DIGIT
        return line["k_gb"] + line["v_gb"], 2 * HALF_DIGIT

    @property
    def state(self) -> Mapping[str, Any] | None:
        return self.said["mamba"][0] if self.said["mamba"] else None


def rows(status: str) -> list[Row]:
    """The rows that an independent reproduction judged so."""
    lines = (REPORTS / "sglang.jsonl").read_text(encoding="utf-8").splitlines()
    found = [Row(json.loads(line)) for line in lines]
    return [row for row in found if row.said["check"]["status"] == status]


def misses(row: Row) -> list[str]:
    """Every figure of a row that kvplan does not give."""
    return [*_pool(row), *_sizes(row), *_states(row), *_start(row)]


def _pool(row: Row) -> Iterator[str]:
    """Tokens of the stated pool."""
    if row.pool is None or row.tokens is None:
        return
    size, open_digits = row.pool
    least, most = (
        row.plan(kv_pool=round((size + side) * GIB)).pools.max_total_tokens
        for side in (-open_digits, open_digits)
    )
    if not least <= row.tokens <= most + row.page:
        yield f"tokens {row.tokens} not within {least} to {most}"


def _sizes(row: Row) -> Iterator[str]:
    """Printed sizes, and running requests, of the stated tokens."""
    if row.tokens is None:
        return
    slots = {"max_mamba_cache_size": row.state["max_mamba_cache_size"]} if row.state else {}
    plan = row.plan(kv_pool=PLENTY, max_total_tokens=row.tokens, **slots)
    printed = "\n".join(plan.prints)
    for line in row.said["kv_lines"]:
        said = f"#tokens: {line['tokens']}, " + (
            f"K size: {line['k_gb']:.2f} GB, V size: {line['v_gb']:.2f} GB"
            if line["kv_gb"] is None
            else f"KV size: {line['kv_gb']:.2f} GB"
        )
        if said not in printed:
            yield f"{said!r} not in {printed!r}"
    wanted = row.said["max_running_requests"]
    if wanted is not None and wanted != plan.running.requests:
        yield f"{wanted} running requests, not {plan.running}"


def _states(row: Row) -> Iterator[str]:
    """Sizes of the state slots, and how many there are beside the stated pool."""
    if row.state is None:
        return
    slots = row.state["max_mamba_cache_size"]
    said = (
        f"max_mamba_cache_size: {slots}, conv_state size: {row.state['conv_state_gb']:.2f}GB, "
        f"ssm_state size: {row.state['ssm_state_gb']:.2f}GB"
    )
    printed = row.plan(kv_pool=PLENTY, max_mamba_cache_size=slots).prints[0]
    if said not in printed:
        yield f"{said!r} not in {printed!r}"
    if row.pool is not None:
        size, open_digits = row.pool
        least, most = (
            row.plan(kv_pool=round((size + side) * GIB)).pools.slots
            for side in (-open_digits, open_digits)
        )
        if not least <= slots <= most:
            yield f"{slots} slots not within {least} to {most}"


def _start(row: Row) -> Iterator[str]:
    """What the errors say: a cap by states, weights that leave nothing."""
    for error in row.said["errors"] or ():
        if "capped to" in error:
            plan = row.plan(kv_pool=PLENTY)
            if f"capped to {plan.running.requests} by" not in error:
                yield f"{error!r}: {plan.running}"
        elif "leave no GPU memory" in error:
            plan = row.plan()
            if plan.starts or "above 0.912" not in str(plan.reason):
                yield f"{error!r}: {plan.reason!r}"
