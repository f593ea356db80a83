"""`fit`: a cold start of the command, and a sweep of models, cards and flags from Python.

No peer plans vLLM's pool from Python with an engine's flags; the sweep's peer is plain arithmetic,
our own `--engine none`, which every calculator does.
"""

from __future__ import annotations

import itertools
import sys
import time
from pathlib import Path
from typing import Any

import kvplan
from benchmarks.timing import command, in_turn

OURS = str(Path(sys.executable).parent / "kvplan")
MODELS = (
    "qwen3-32b",
    "llama-3.1-8b",
    "gemma-3-27b",
    "deepseek-v3",
    "gpt-oss-120b",
    "jamba-1.5-mini",
)
CARDS = ("h100-sxm-80gb", "a100-sxm-80gb", "h200", "b200", "l40s")
LENGTHS = tuple(range(4096, 4096 + 16 * 100, 16))
COUNT = 3000


def sweep(engine: str, **flags: Any) -> float:
    """Combinations a second: capacity only, no levers."""
    start, done = time.perf_counter(), 0
    for model, card, length in itertools.islice(
        itertools.cycle(itertools.product(MODELS, CARDS, LENGTHS)), COUNT
    ):
        answer = kvplan.fit(model, engine=engine, gpu=card, gpus=8, context=length, **flags)
        done += answer.sequences >= 0
    return done / (time.perf_counter() - start)


def main() -> None:
    """Cold, then many."""
    cold = command(OURS, "fit", "qwen3-32b", "--gpu", "h100", "--gpus", "2", "--offline")
    nothing = command(sys.executable, "-c", "pass")
    print(f"kvplan fit, cold, against python -c pass: {in_turn(cold, nothing)}")
    vllm, plain = sweep("vllm", gpu_memory_utilization=0.9), sweep("none")
    print(f"fit --engine vllm: {vllm:,.0f} combinations/s; plain arithmetic {plain:,.0f}: "
          f"ratio {vllm / plain:.2f}; 100,000 in {100_000 / vllm:.0f} s")  # fmt: skip


if __name__ == "__main__":
    main()
