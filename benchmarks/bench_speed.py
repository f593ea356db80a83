"""Others' time per output token on the rows that are kept aside, beside ours.

python -m benchmarks.bench_speed [SECONDS] [TOOL…]

The peers run in an environment of their own. Rows come in a drawn order, so that a run that is cut
short is a sample of all. Answers are kept in tests/reference/speed/peers.json, which the accuracy
page reads.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from benchmarks.timing import peer
from tools.accuracy_speed import PEERS, figures, is_dense_big, is_loop, is_other, told
from tools.speed_data import SEED
from tools.speed_rows import Row

TOOLS: Final = ("aiconfigurator", "aisimulate")
SYSTEMS: Final = {
    "h100-sxm-80gb": "h100_sxm", "h200": "h200_sxm", "b200": "b200_sxm", "b300": "b300_sxm",
    "a100-sxm-80gb": "a100_sxm",
}  # fmt: skip
BACKENDS: Final = {"vllm": "vllm", "sglang": "sglang", "tensorrt-llm": "trtllm"}
NAMES: Final = {
    "meta-llama/Llama-3.1-8B-Instruct": "meta-llama/Meta-Llama-3.1-8B",
    "meta-llama/Meta-Llama-3-8B": "meta-llama/Meta-Llama-3.1-8B",
    "meta-llama/Llama-3.1-70B": "meta-llama/Meta-Llama-3.1-70B",
}


def question(row: Row) -> dict[str, Any] | None:
    """A row in the peers' words; None for a card or an engine that they do not have."""
    system, backend = SYSTEMS.get(row.device), BACKENDS.get(row.engine)
    if system is None or backend is None:
        return None
    formats = {"kvcache_quant_mode": "fp8" if row.kv_dtype == "fp8" else "bfloat16"}
    if row.quantization == "fp8" and "DeepSeek" not in row.model:
        formats["gemm_quant_mode"] = "fp8"
    return {
        "model": NAMES.get(row.model, row.model),
        "system": system,
        "backend": backend,
        "prompt": round(row.prompt),
        "output": round(row.output),
        "clients": row.concurrency,
        "tensor": 1 if row.attention_dp else row.tp,
        "attention_data": row.gpus if row.attention_dp else 1,
        "moe_tensor": 1 if row.experts_dealt else row.gpus,
        "moe_expert": row.gpus if row.experts_dealt else 1,
        "formats": formats,
    }


def answers_of(tool: str, asked: dict[str, Any], seconds: str) -> dict[str, Any] | None:
    """What a tool answers in so many seconds; None where it cannot be installed."""
    python = peer(tool)
    if python is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "rows.json", Path(folder) / "answers.json"
        source.write_text(json.dumps(asked), encoding="utf-8")
        script = Path(__file__).parent / "speed_peer.py"
        command = [str(python), str(script), tool, str(source), str(target), seconds]
        subprocess.run(command, check=True)
        found = json.loads(target.read_text(encoding="utf-8"))
    answers = {place: value for place, value in found["answers"].items() if value}
    return {"version": found["version"], "asked": len(found["answers"]), "answers": answers}


def main() -> None:
    """Ask, keep what is answered, and print both tools' errors on the same rows."""
    seconds = sys.argv[1] if len(sys.argv) > 1 else "600"
    rows = {row.case.row.place: row for row in told() if is_loop(row)}
    order = list(rows)
    random.Random(SEED).shuffle(order)
    asked = {str(p): q for p in order if (q := question(rows[p].case.row)) is not None}
    kept = json.loads(PEERS.read_text(encoding="utf-8"))["peers"] if PEERS.exists() else {}
    for tool in sys.argv[2:] or TOOLS:
        found = answers_of(tool, asked, seconds)
        if found is None:
            continue
        kept[tool] = found
        PEERS.write_text(json.dumps({"peers": kept}, indent=1) + "\n", encoding="utf-8")
        print(f"{tool}: {len(found['answers'])} answers to {found['asked']} rows")
        for name, test in (("dense", is_dense_big), ("mixtures, other cards", is_other)):
            both = [row for p, row in rows.items() if str(p) in found["answers"] and test(row)]
            off = (found["answers"][str(r.case.row.place)] / r.case.row.value - 1 for r in both)
            its = sorted(map(abs, off))
            if its:
                print(
                    f"  {name}: {len(its)} rows, its median {its[len(its) // 2]:.1%}, ours", end=" "
                )
                print(figures(both))


if __name__ == "__main__":
    main()
