"""Latency of published closed loops: ours beside AISimulate's, on the same rows and lengths.

    python -m benchmarks.bench_latency [SAMPLE]

Each row is run as its source ran it (``tools.accuracy_latency``). AISimulate gets the same drawn
lengths as a trace in a closed loop, the same layout and the same tokens a step; its times are those
of its own measured operators. Rows are those that both can plan: dense models whose rates were
calibrated on other rows of theirs are told from models that were kept aside.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import mean, median
from typing import Any, Final, NamedTuple

import numpy as np

from benchmarks.timing import ROOT
from kvplan.planning.speed import estimate
from kvplan.simulation.traffic import Traffic
from tools.accuracy_latency import SEED, answered
from tools.speed_cases import Case, case_of
from tools.speed_data import data
from tools.speed_rows import Row
from tools.speed_simulated import loop_of, simulated_s

PEER: Final = ROOT / ".venv-aisimulate"
PACKAGE: Final = "aisimulate==0.13.0.dev202610270000000085"
CARDS: Final = {"h100-sxm-80gb": "h100_sxm", "h200": "h200_sxm", "b200": "b200_sxm"}
BACKENDS: Final = {"vllm": "vllm", "sglang": "sglang", "tensorrt-llm": "trtllm"}
# The peer's names of models whose configurations it ships, by group and how weights are stored.
MODELS: Final = {
    ("Llama 3 8B", ""): "meta-llama/Meta-Llama-3.1-8B",
    ("Llama 3 70B", "fp8"): "nvidia/Llama-3.1-70B-Instruct-FP8",
    ("DeepSeek V3", "fp8"): "deepseek-ai/DeepSeek-R1",
    ("DeepSeek V3", ""): "nvidia/DeepSeek-V3.1-NVFP4",
}
MIXTURES: Final = frozenset({"DeepSeek V3"})
SAMPLE: Final = 24
BLOCK: Final = 512


class Both(NamedTuple):
    """A row, what was measured, and both simulations in seconds."""

    row: Row
    measured: dict[str, float]
    ours: dict[str, float]
    theirs: dict[str, float]
    seconds: tuple[float, float]


def program() -> Path | None:
    """The peer's command, in an environment of its own; None where it cannot be had."""
    found = PEER / "bin" / "aisimulate"
    if not found.exists():
        venv.create(PEER, with_pip=True)
        pip = [str(PEER / "bin" / "python"), "-m", "pip", "install", "--quiet", PACKAGE]
        if subprocess.run(pip, check=False).returncode:
            return None
    return found


def chosen(sample: int) -> Iterator[tuple[Row, dict[str, float]]]:
    """As many rows of each kind: dense, dense kept aside, mixtures kept aside."""
    found, aside = [case.row for case in data().cases], data().aside
    kinds: dict[str, list[tuple[Row, dict[str, float]]]] = {}
    for row, measured in answered(found):
        known = (row.group, row.quantization) in MODELS and row.device in CARDS
        if known and len(measured) == 2 and not row.attention_dp:
            kind = f"{row.group in MIXTURES} {row.group in aside}"
            kinds.setdefault(kind, []).append((row, measured))
    for some in kinds.values():
        yield from random.Random(SEED).sample(some, min(sample, len(some)))


def theirs(command: Path, row: Row, traffic: Traffic, batched: int) -> dict[str, float] | None:
    """The peer's means; None where it refuses the row."""
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.jsonl"
        trace.write_text("\n".join(_lines(traffic)), encoding="utf-8")
        config = Path(folder) / "question.yaml"
        asked = _question(row, str(trace), traffic.max_in_flight or 1, batched)
        config.write_text(json.dumps(asked), encoding="utf-8")  # JSON is YAML too
        out = Path(folder) / "out"
        words = [str(command), "predict", "--config", str(config), "--output-dir", str(out)]
        done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=600)
        if done.returncode:
            return None
        said = json.loads((out / "prediction.json").read_text(encoding="utf-8"))
    return {"ttft_s": said["mean_ttft_ms"] / 1e3, "tpot_s": said["mean_tpot_ms"] / 1e3}


def _lines(traffic: Traffic) -> Iterator[str]:
    """Requests of their own blocks, in Mooncake's form."""
    blocks = np.concatenate([[0], np.cumsum(-(-traffic.prompt_tokens // BLOCK))])
    for index in range(len(traffic)):
        yield json.dumps({
            "timestamp": 0,
            "input_length": int(traffic.prompt_tokens[index]),
            "output_length": int(traffic.output_tokens[index]),
            "hash_ids": list(range(int(blocks[index]), int(blocks[index + 1]))),
        })  # fmt: skip


def _question(row: Row, trace: str, clients: int, batched: int) -> dict[str, Any]:
    experts = {"moe_expert": row.tp} if row.experts_dealt else {"moe_tensor": row.tp}
    mixed = experts if row.group in MIXTURES else {}
    worker = {
        "parallelism": {"tensor": row.tp, **mixed},
        "scheduler": {"max_batched_tokens": batched, "max_sequences": max(256, clients)},
    }
    return {
        "traffic": {
            "source": {"type": "trace", "paths": [trace], "format": "mooncake"},
            "load": {"type": "concurrency", "concurrency": clients},
        },
        "engine": {
            "mode": "aggregated",
            "model": MODELS[row.group, row.quantization],
            "hardware": CARDS[row.device],
            "backend": BACKENDS[row.engine],
            "workers": {"aggregated": worker},
        },
    }


def compared(command: Path, sample: int) -> Iterator[Both]:
    """Every chosen row that both answer."""
    for row, measured in chosen(sample):
        case = case_of(row)
        if not isinstance(case, Case):
            continue
        found = estimate(case.plan)
        if found is None:
            continue
        start = time.process_time()
        ours = simulated_s(case)
        middle = time.perf_counter()
        spent = time.process_time() - start
        other = theirs(command, row, loop_of(row, row.concurrency), found.batching.budget)
        if ours is not None and other is not None:
            yield Both(row, measured, ours, other, (spent, time.perf_counter() - middle))


def told(found: Sequence[Both], what: str) -> None:
    """Median and mean size of the error of both, and which way it goes."""
    for metric in ("tpot_s", "ttft_s"):
        for name in ("ours", "theirs"):
            errors = [getattr(b, name)[metric] / b.measured[metric] - 1 for b in found]
            sizes = [abs(error) for error in errors]
            print(
                f"  {what:22} {len(found):3} rows  {metric:7} {name:7} median |error| "
                f"{median(sizes):6.1%}  mean {mean(sizes):6.1%}  median {median(errors):+6.1%}"
            )


def main() -> int:
    """Both beside each other."""
    sample = int(sys.argv[1]) if len(sys.argv) > 1 else SAMPLE
    command = program()
    if command is None:
        print("  aisimulate cannot be installed here: not compared", file=sys.stderr)
        return 0
    found = list(compared(command, sample))
    aside = data().aside
    kinds: dict[str, Callable[[Row], bool]] = {
        "dense, others fitted": lambda row: row.group not in aside,
        "dense, kept aside": lambda row: row.group in aside and row.group not in MIXTURES,
        "mixtures, kept aside": lambda row: row.group in MIXTURES,
    }
    for what, belongs in kinds.items():
        some = [both for both in found if belongs(both.row)]
        if some:
            told(some, what)
    spent = [sum(both.seconds[place] for both in found) for place in (0, 1)]
    print(f"  {spent[0]:.1f} s of ours, in process, against {spent[1]:.1f} s of its command")
    return 0


if __name__ == "__main__":
    sys.exit(main())
