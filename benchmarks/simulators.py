"""One question for several simulators: each runs in an environment and a process of its own.

The question is a closed loop of equal requests, or Mooncake's trace, on a pool of so many blocks
of 16 tokens; a step takes a constant, so that what is timed is the scheduler.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.timing import ROOT

AISIMULATE = ROOT / ".venv-aisimulate"
VLLM = ROOT / ".venv-vllm" / "bin" / "python"
VERSION = "aisimulate==0.13.0.dev202610270000000085"
# What its wheel asks for, without the optimisers of its recommendations (jax and 1 GB more).
NEEDS = ("jinja2", "packaging", "matplotlib", "numpy<3", "pandas", "plotext", "plotly",
         "prettytable", "pydantic", "psutil<8", "ijson<4", "pyarrow", "pyyaml", "scipy", "tqdm",
         "munch", "nvidia-ml-py")  # fmt: skip


class Timed(NamedTuple):
    """What a process took, of the processor and by the clock, and what it printed."""

    cpu_s: float
    wall_s: float
    said: dict[str, Any]


def timed(command: list[str], environment: Mapping[str, str] | None = None) -> Timed:
    """A command that prints JSON last, by the time that it and its children took.

    Raises:
        CalledProcessError: it failed.
    """
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=900, cwd=ROOT,
        env={**os.environ, **(environment or {})},
    )  # fmt: skip
    took, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Timed(cpu, took, json.loads(done.stdout.strip().splitlines()[-1]))


def aisimulate() -> Path | None:
    """Its command; None where it cannot be had."""
    own = AISIMULATE / "bin" / "aisimulate"
    if own.exists():
        return own
    venv.create(AISIMULATE, with_pip=True)
    pip = [str(AISIMULATE / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    for words in (["--pre", "--no-deps", "--only-binary", ":all:", VERSION], list(NEEDS)):
        done = subprocess.run([*pip, *words], check=False, capture_output=True, text=True)
        if done.returncode:
            print("  aisimulate cannot be installed here: not compared", file=sys.stderr)
            return None
    return own


def theirs(command: Path, source: dict[str, Any], load: dict[str, Any], stop: int) -> Timed:
    """The same question to aisimulate; its prefill and decode steps take constants too."""
    worker = {
        "scheduler": {"max_batched_tokens": 8192, "max_sequences": 256},
        "parallelism": {"tensor": 2},
        "kv_cache": {"block_size": 16, "capacity": {"type": "fixed", "blocks": 30_000}},
        "timing": {"type": "fixed", "prefill_ms": 20.0, "decode_ms": 10.0},
    }
    engine = {"model": "Qwen/Qwen3-32B", "hardware": "h100_sxm", "backend": "vllm",
              "context_length": 131_072, "workers": {"aggregated": worker}}  # fmt: skip
    traffic: dict[str, Any] = {"source": source, "load": load}
    if stop:
        traffic["stop"] = {"requests": stop}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "question.yaml"
        path.write_text(json.dumps({"traffic": traffic, "engine": engine}), encoding="utf-8")
        words = ["predict", "-c", str(path), "--format", "json", "--output-dir", f"{folder}/out"]
        return timed([str(command), *words])
