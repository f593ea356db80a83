"""Real servers of 23 builds, b4798 to b11549, on a CPU: the lines that each printed.

Every build was started with Gemma 3 270M (windows) and SmolLM2 135M: one slot, two slots apart, two
slots in one cache, keys in q8_0. tests/live/test_llamacpp.py does the same with the newest.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

import kvplan
from kvplan.core.units import MIB
from kvplan.engines.llamacpp.plan import LlamaPlan
from tests.engines.aliases import CONFIGS, REPORTS

MODELS = {"gemma3": "google--gemma-3-270m.json", "smollm2": "mlc-preset--smollm2_135m.json"}
LINES = (REPORTS / "llamacpp_builds.jsonl").read_text(encoding="utf-8").splitlines()
STARTS = [json.loads(line) for line in LINES]


def label(start: dict[str, Any]) -> str:
    return f"{start['build']}-{start['model']}-{'-'.join(map(str, start['flags'].values()))}"


def plan_of(start: dict[str, Any]) -> LlamaPlan:
    flags = {name.strip("-").replace("-", "_"): value for name, value in start["flags"].items()}
    plan = kvplan.fit(
        CONFIGS / MODELS[start["model"]],
        gpu_memory="24GiB",
        engine="llama.cpp",
        engine_version=start["build"],
        n_gpu_layers=0,
        **flags,
    ).plan
    assert isinstance(plan, LlamaPlan)
    return plan


@pytest.mark.parametrize("start", STARTS, ids=label)
def test_lines_are_those_of_the_build(start: dict[str, Any]) -> None:
    """Names, cells, layers, sequences and sizes are equal, character by character."""
    assert start["lines"] == list(plan_of(start).prints)


@pytest.mark.parametrize("start", STARTS, ids=label)
def test_buffers_of_the_build(start: dict[str, Any]) -> None:
    """The output buffer to the printed digit; the graph's within its stated error."""
    layout = plan_of(start).layout
    graph = layout.on_host_alone()

    assert start["output_mib"] == round(layout.host.output / MIB, 2)
    assert abs(start["compute_mib"] - graph.num_bytes / MIB) <= graph.error / MIB
