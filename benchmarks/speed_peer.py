"""A peer's answers to rows of a file; run by ``bench_speed`` with the peer's own Python.

python speed_peer.py TOOL ROWS.json ANSWERS.json SECONDS
"""

from __future__ import annotations

import json
import logging
import sys
import time
import warnings
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)
WAVES = 4  # requests of each simulated client


def aiconfigurator(row: dict[str, Any]) -> float:
    """Its estimate of one point."""
    estimate = import_module("aiconfigurator.cli.api").cli_estimate
    asked = {
        "backend_name": row["backend"],
        "isl": row["prompt"],
        "osl": row["output"],
        "batch_size": max(1, row["clients"] // row["attention_data"]),
        "tp_size": row["tensor"],
        "attention_dp_size": row["attention_data"],
        "moe_tp_size": row["moe_tensor"],
        "moe_ep_size": row["moe_expert"],
        **row["formats"],
    }
    found: float = estimate(row["model"], row["system"], **asked).tpot
    return found / 1000


def aisimulate(row: dict[str, Any]) -> float:
    """Its replay of clients in a closed loop: the mean time per output token."""
    config = import_module("aisimulate.config.cli").CorePredictionConfig
    factory = import_module("aisimulate.stack").resolve_runner_factory("engine")
    parallelism = {
        "tensor": row["tensor"],
        "attention_data": row["attention_data"],
        "moe_tensor": row["moe_tensor"],
        "moe_expert": row["moe_expert"],
    }
    asked = {
        "traffic": {
            "source": {"input_tokens": row["prompt"], "output_tokens": row["output"]},
            "load": {"type": "concurrency", "concurrency": row["clients"]},
            "stop": {"requests": WAVES * row["clients"]},
        },
        "engine": {
            "mode": "aggregated",
            "model": row["model"],
            "hardware": row["system"],
            "backend": row["backend"],
            "workers": {
                "aggregated": {
                    "parallelism": parallelism,
                    "kv_cache": {"prefix_caching": False},
                    "timing": row["formats"],
                }
            },
        },
    }
    asked["traffic"]["source"]["type"] = "synthetic"
    run = import_module("aisimulate.predict").run_prediction
    result = run(config.model_validate(asked), stack="engine", runner_factory=factory)
    found: float = result.summary["mean_tpot_ms"]
    return found / 1000


def main() -> None:
    """Until the rows or the time are at an end; what was answered is written as it comes."""
    tool, rows, target = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    ask = {"aiconfigurator": aiconfigurator, "aisimulate": aisimulate}[tool]
    begun = time.monotonic()
    answers: dict[str, float | None] = {}
    for place, row in json.loads(rows.read_text(encoding="utf-8")).items():
        if time.monotonic() - begun > float(sys.argv[4]):
            break
        try:
            answers[place] = ask(row)
        except Exception:
            answers[place] = None
        told = {"version": version(tool), "answers": answers}
        target.write_text(json.dumps(told), encoding="utf-8")


if __name__ == "__main__":
    main()
