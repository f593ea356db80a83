"""Groups, blocks and printed figures of mixes of specs against vLLM 0.32.0's own planning.

``grouping_cases.json`` gives of each layer its type, block size and page; the windows and states
are those of the script that made it.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kvplan.engines.vllm.admission import longest_that_fits, needed_bytes
from kvplan.engines.vllm.grouping import count_equal, group
from kvplan.engines.vllm.groups import Stages
from kvplan.engines.vllm.pool import block_bytes, printed
from kvplan.engines.vllm.rules import NEWEST, rules_of
from kvplan.engines.vllm.specs import (
    CrossSpec,
    FullSpec,
    LatentSpec,
    Request,
    Spec,
    StateSpec,
    WindowSpec,
)

FOLDER = Path(__file__).parents[2] / "reference" / "vllm_oracle"
CASES: dict[str, Any] = json.loads((FOLDER / "grouping_cases.json").read_text(encoding="utf-8"))
RULES = rules_of(NEWEST)
BATCH = 8192


class Windows(NamedTuple):
    """Layers in a row with one window."""

    count: int
    size: int


WINDOWS = {
    "12 sw + 13 full (n_max < 1.5 n_min)": [Windows(12, 128)],
    "20 full + 30 sw (exactly 1.5: split by min)": [Windows(30, 128)],
    "20 full + 29 sw": [Windows(29, 128)],
    "two windows + full (7 full, 7 sw512, 14 sw4096)": [Windows(7, 512), Windows(14, 4096)],
    "gemma4-like: 5 full kv4 hd512 + 25 sw kv16 hd256": [Windows(25, 1024)],
    "full page 3/4 of sw page (padded)": [Windows(10, 1024)],
    "hybrid disabled: 10 full + 50 sw": [Windows(50, 1024)],
    "all sliding, one window": [Windows(32, 4096)],
    "MLA + plain sw not dividing (fallback)": [Windows(5, 512)],
    "auto fit gpt-oss 600 blocks": [Windows(12, 128)],
}
OVERRIDES = {"override 48 blocks of 32, M=1200": 48}
NAMES = {cls.engine_name: cls for cls in (FullSpec, LatentSpec, CrossSpec, StateSpec, WindowSpec)}


def layers_of(name: str) -> list[tuple[Spec, Stages]]:
    """The specs of a case, one an entry."""
    windows = [w.size for w in WINDOWS.get(name, []) for _ in range(w.count)]
    found: list[tuple[Spec, Stages]] = []
    for row in CASES[name]["specs"]:
        more: dict[str, Any] = {}
        if row["type"] == "SlidingWindowSpec":
            more["size"] = windows.pop(0)
        if row["type"] == "MambaSpec":
            more["mode"] = "align"
        cls = NAMES[row["type"]]
        found.append((cls(block_size=row["block_size"], page_bytes=row["page"], **more), (0,)))
    return found


def planned(name: str) -> dict[str, Any]:
    """The answer in the form of the file."""
    case, layers = CASES[name], layers_of(name)
    groups = group(layers, RULES, hybrid="hybrid disabled" not in name)
    block = block_bytes(groups, RULES)
    available = case["available_bytes"]
    if name in OVERRIDES:
        available = OVERRIDES[name] * block
    request = Request(case["max_model_len"], 2 * BATCH, 2 if "dcp 2" in name else 1, 1500)
    usable = available - block  # the null block

    def needed(length: int) -> int:
        asked = request._replace(max_len=length)
        return needed_bytes(groups, count_equal(layers), block, asked, RULES)

    if needed(request.max_len) > usable:
        return {"estimate": longest_that_fits(needed, usable, request.max_len)}
    figures = printed(groups, available // block, request, RULES)
    return {
        "num_blocks": available // block,
        "bytes_per_block": block,
        "kv_cache_size_tokens": figures.tokens,
        "max_concurrency": figures.concurrency,
        "groups": [
            {
                "n_layers": g.layers,
                "type": "UniformTypeKVCacheSpecs" if g.is_mixed else g.spec.engine_name,
                "block_size": g.spec.block_size,
                "page_size_bytes": g.page_bytes,
                "blocks_per_max_len_request": g.blocks(request),
            }
            for g in groups
        ],
    }


@pytest.mark.parametrize("name", CASES)
def test_case_is_planned_as_vllm_plans_it(name: str) -> None:
    """Blocks, bytes, groups and printed figures; where it refuses, the length it estimates."""
    case = CASES[name]
    if "error" in case:
        expected: dict[str, Any] = {
            "estimate": int(re.findall(r"maximum model length is (\d+)", case["error"])[0])
        }
    else:
        keys = ("num_blocks", "bytes_per_block", "kv_cache_size_tokens", "max_concurrency")
        expected = {key: case[key] for key in (*keys, "groups")}

    actual = planned(name)

    assert expected == actual


@pytest.mark.parametrize("name", ["auto fit, 100 blocks", "auto fit gpt-oss 600 blocks"])
def test_auto_length_is_the_longest_that_the_check_lets_through(name: str) -> None:
    """``--max-model-len auto`` takes what the start check would estimate."""
    case, layers = CASES[name], layers_of(name)
    groups = group(layers, RULES)
    block = block_bytes(groups, RULES)

    def needed(length: int) -> int:
        asked = Request(length, 2 * BATCH)
        return needed_bytes(groups, count_equal(layers), block, asked, RULES)

    usable = case["available_bytes"] - block

    assert longest_that_fits(needed, usable, 131072) == case["max_model_len"]
