"""Whole models against vLLM 0.32.0's own planning over its own model classes.

``models.json`` has per model, length, batch and pool the blocks, groups and printed figures; its
configs are consistent inputs, not the published files.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from kvplan.core.model import Model
from kvplan.engines.base import Asked, Node
from kvplan.engines.registry import engine_of
from kvplan.readers.devices import find_device
from kvplan.readers.hf_config import read_config

FOLDER = Path(__file__).parents[2] / "reference" / "vllm_oracle"
CASES: dict[str, Any] = json.loads((FOLDER / "models.json").read_text(encoding="utf-8"))
ROWS = [(name, place) for name, case in CASES.items() for place in range(len(case["rows"]))]
KV_DTYPES = {"deepseek-v3.2-fp8_ds_mla": ("deepseek-v3.2", "fp8_ds_mla")}


@cache
def model_of(name: str) -> Model:
    """The model of a config."""
    raw = json.loads((FOLDER / "configs" / f"{name}.json").read_text(encoding="utf-8"))
    return read_config(raw, name=name)


def planned(name: str, row: dict[str, Any]) -> dict[str, Any]:
    """The answer in the form of the file, groups in order of their pages."""
    config, _, ranks = name.partition("@tp")
    config, kv_dtype = KV_DTYPES.get(config, (config, "auto"))
    device, _ = find_device("h100-sxm-80gb")
    tp = int(ranks or 1)
    flags = {
        "--tensor-parallel-size": tp,
        "--max-num-batched-tokens": row["max_num_batched_tokens"],
        "--max-model-len": row["max_model_len"],
        "--kv-cache-dtype": kv_dtype,
    }
    asked = Asked(context=1, flags=flags, pool_bytes=row["available_bytes"])
    node = Node(device=device, gpus=tp, memory_bytes=device.memory_bytes or 0)
    plan = engine_of("vllm").plan(model_of(config), node, asked)
    if not plan.starts:
        found = re.search(r"maximum model length is (\d+)", plan.reason or "")
        return {"estimate": int(found[1]) if found else plan.reason}
    groups = [
        (g.layers, g.block_size, g.page_bytes, g.blocks_per_sequence) for g in plan.pool.groups
    ]
    return {
        "num_blocks": plan.pool.num_blocks,
        "bytes_per_block": plan.pool.bytes_per_block,
        "kv_cache_size_tokens": plan.pool.kv_tokens,
        "max_concurrency": plan.pool.max_concurrency,
        "groups": sorted(groups),
    }


@pytest.mark.parametrize(("name", "place"), ROWS, ids=[f"{n}-{p}" for n, p in ROWS])
def test_row_is_planned_as_vllm_plans_it(name: str, place: int) -> None:
    """Blocks, bytes a block, printed figures and groups; where it refuses, the length it says."""
    row = CASES[name]["rows"][place]
    if "error" in row:
        said = re.findall(r"maximum model length is (\d+)", row["error"])
        expected: dict[str, Any] = {"estimate": int(said[0])}
    else:
        keys = ("num_blocks", "bytes_per_block", "kv_cache_size_tokens", "max_concurrency")
        groups = [
            (g["n_layers"], g["block_size"], g["page_size_bytes"], g["blocks_per_max_len_request"])
            for g in row["groups"]
        ]
        expected = {key: row[key] for key in keys} | {"groups": sorted(groups)}

    actual = planned(name, row)

    assert expected == actual
