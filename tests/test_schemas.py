"""The schemas that ship: each key of an answer is named, and one that is missing is told."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import kvplan
from kvplan.simulation.answers import Replays
from kvplan.simulation.find_rate import find_rate
from kvplan.simulation.replay import replay
from kvplan.simulation.sweep import sweep
from tests.lab.answers import answer as lab_answer
from tests.measuring import answers

STARTED = """\
vLLM API server version 0.19.0
non-default args: {'model': 'meta-llama/Llama-3.1-8B-Instruct', 'max_model_len': 8192}
Available KV cache memory: 50.00 GiB
GPU KV cache size: 409,600 tokens
Maximum concurrency for 8,192 tokens per request: 50.00x
"""
FAILED = (
    "The model's max seq len (4096) is larger than the maximum number of tokens that can be stored "
    "in KV cache (3664).\n"
)
SIMULATED = {
    "model": "llama-3.1-8b", "gpu": "h100-sxm-80gb", "rate": 20.0, "requests": 30,
    "prompt": "uniform:100-900", "output": 20, "time": "constant:10ms",
}  # fmt: skip
SCENARIO = {
    "id": "one",
    "settings": {
        "num_blocks": 20, "block_size": 4, "max_num_seqs": 4, "max_num_batched_tokens": 16,
        "max_model_len": 64,
    },
    "requests": [{"arrival_step": 0, "prompt": [["a", 0, 10]], "output_tokens": 3}],
}  # fmt: skip
ANSWERS = {
    "one size": lambda: kvplan.size(
        "llama-3.1-8b", prompt=10, output=5, requests=2, shared_prefix=3
    ),
    "two sizes": lambda: kvplan.size(["gpt2", "mamba-2.8b"]),
    "a fit": lambda: kvplan.fit("llama-3.1-8b", gpu="h100", engine="none", price=2),
    "an advice": lambda: kvplan.advise(
        "llama-3.1-8b", users=4, context="8k", gpu="l40s,h100-sxm-80gb", api="gpt-5-mini"
    ),
    "an advice that nothing meets": lambda: kvplan.advise(
        "llama-3.1-8b", users=4, prompt=4000, tpot="1ms", gpu="l40s", size_at="p90"
    ),
    "a log": lambda: kvplan.explain(STARTED, gpu="h100"),
    "two logs": lambda: kvplan.explain(STARTED, STARTED.replace("50.00 GiB", "40.00 GiB")),
    "a failure": lambda: kvplan.explain("# GPU blocks: 229, # CPU blocks: 512\n" + FAILED),
    "requests behind a stamp": lambda: kvplan.prefix(
        [f"{day}. {'A handbook of few words. ' * 300}" for day in ("Monday", "Friday")],
        pool_blocks=100, model="llama-3.1-8b", gpu="h100", api="openai/gpt-4o",
    ),
    "a simulation": lambda: kvplan.simulate(**SIMULATED, seeds=2),
    "a sweep": lambda: sweep(SIMULATED, ["rate=5,50"], jobs=1),
    "a search": lambda: find_rate(SIMULATED, ttft="40ms"),
    "caches": lab_answer,
    "a measurement": answers.measured,
    "two measurements": answers.compared,
    "scenarios": lambda: Replays(scenarios=(replay(SCENARIO),)),
}  # fmt: skip
# Names that a question chooses, and values of any type.
OPEN = (
    "launch",
    "predicted",
    "numbers",
    "intervals",
    "extras",
    "at",
    "flags",
    "packages",
    "failures",
)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every key, of a list's first item alone."""
    items = value.items() if isinstance(value, dict) else enumerate(value[:1])
    for key, inner in items:
        if isinstance(value, dict):
            yield (*path, key)
        if isinstance(inner, dict | list):
            yield from places(inner, (*path, key))


@pytest.mark.parametrize("name", ANSWERS)
def test_no_key_may_be_missing(name: str) -> None:
    """Of what is shipped nothing is optional."""
    answer = ANSWERS[name]().to_dict()
    text = files("kvplan").joinpath(f"data/schemas/{answer['verb']}.json").read_text("utf-8")
    schema = Draft202012Validator(json.loads(text))
    untold = []
    for path in places(answer):
        without = copy.deepcopy(answer)
        inner = without
        for key in path[:-1]:
            inner = inner[key]
        del inner[path[-1]]
        if not set(OPEN) & set(path[:-1] or path) and schema.is_valid(without):
            untold.append(path)

    assert schema.is_valid(answer)
    assert [] == untold
