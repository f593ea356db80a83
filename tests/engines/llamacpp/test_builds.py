"""Real servers of 22 builds, b4798 to b11549, on a CPU: the lines that each printed.

Every build was started with Gemma 3 270M (windows) and SmolLM2 135M, with one slot, two slots apart,
two slots in one cache, and keys in q8_0; tests/live/test_llamacpp.py does the same with the newest.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

import kvplan
from tests.engines.aliases import CONFIGS, REPORTS

MODELS = {"gemma3": "google--gemma-3-270m.json", "smollm2": "mlc-preset--smollm2_135m.json"}
LINES = (REPORTS / "llamacpp_builds.jsonl").read_text(encoding="utf-8").splitlines()
STARTS = [json.loads(line) for line in LINES]


def label(start: dict[str, Any]) -> str:
    return f"{start['build']}-{start['model']}-{'-'.join(map(str, start['flags'].values()))}"


@pytest.mark.parametrize("start", STARTS, ids=label)
def test_lines_are_those_of_the_build(start: dict[str, Any]) -> None:
    """Names, cells, layers, sequences and sizes are equal, character by character."""
    flags = {name.strip("-").replace("-", "_"): value for name, value in start["flags"].items()}
    plan = kvplan.fit(
        CONFIGS / MODELS[start["model"]],
        gpu_memory="24GiB",
        engine="llama.cpp",
        engine_version=start["build"],
        n_gpu_layers=0,
        **flags,
    ).plan

    assert start["lines"] == list(plan.prints)
