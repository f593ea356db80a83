"""How InferenceX started its servers, where that decides the first token and a row does not say it.

Read in the project's own scripts (benchmarks/, github.com/SemiAnalysisAI/InferenceX), by engine,
model and card; a flag is set here only as a script sets it. Clients: ``--num-prompts`` ten times
``--max-concurrency``, ``--request-rate inf``, all clients at once at the beginning.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from kvplan.core.errors import KvplanError
from kvplan.engines.base import EnginePlan
from kvplan.engines.registry import engine_of
from tools.speed_rows import Row

NOMINAL: Final = 0.9
LENGTH_1K: Final = 1024


def planned_as_run(row: Row, plan: EnginePlan) -> EnginePlan:
    """The plan with the script's flags; as it is where no script is known or it does not start."""
    said = flags(row)
    if not said:
        return plan
    engine = engine_of(plan.engine)
    try:
        parsed = engine.flags.parse(said)
        found = engine.plan(
            plan.model, plan.node, replace(plan.asked, flags={**plan.asked.flags, **parsed})
        )
    except KvplanError:
        return plan
    return found if found.starts else plan


def flags(row: Row) -> dict[str, Any]:
    """What the script of a row sets; nothing for rows of other sources."""
    if not row.drawn:
        return {}
    prompt, output = round(row.prompt / NOMINAL), round(row.output / NOMINAL)
    if row.engine == "tensorrt-llm":
        return _tensorrt(row, prompt, output)
    if row.engine == "sglang" and row.group == "DeepSeek V3":
        return _sglang(row)
    if row.engine == "vllm" and row.group == "Llama 3 70B":
        # 70b_fp8_h200_slurm.sh, 70b_fp8_b200_docker.sh, 70b_fp4_b200_docker.sh
        return {"--max-num-batched-tokens": "8192"}
    return {}


def _tensorrt(row: Row, prompt: int, output: int) -> dict[str, Any]:
    if row.group == "Llama 3 70B":
        # 70b_fp8_b200_trt_slurm.sh, 70b_fp4_b200_trt_slurm.sh, 70b_fp8_h200_trt_slurm.sh
        held = prompt == output == LENGTH_1K and row.tp < 8
        return {"--max-num-tokens": "16384", **(_wait(20, 0.9) if held else {})}
    if row.group != "DeepSeek V3":
        return {}
    # dsr1_fp8_b200_trt.sh, dsr1_fp4_b200_trt.sh, dsr1_fp8_h200_trt.sh
    tokens = (row.concurrency + prompt + 64 + 63) // 64 * 64
    if row.device != "b200":
        return {"--max-num-tokens": str(tokens)}
    held = (
        row.quantization == "fp8" and prompt == output == LENGTH_1K and 64 <= row.concurrency < 256
    )
    return {"--max-num-tokens": str(max(tokens, 8192)), **(_wait(40, 0.8) if held else {})}


def _wait(steps: int, share: float) -> dict[str, Any]:
    return {"--batch-wait-timeout-iters": str(steps), "--batch-wait-max-tokens-ratio": str(share)}


def _sglang(row: Row) -> dict[str, Any]:
    # dsr1_fp8_b200.sh, dsr1_fp4_b200.sh, dsr1_fp8_h200.sh
    radix = {"--disable-radix-cache": True}
    if row.device == "h200":
        return radix | {"--chunked-prefill-size": "32768", "--max-prefill-tokens": "32768"}
    looks = "30" if row.concurrency >= 16 else "10"
    if row.quantization == "fp8":
        if row.tp == 4:
            return radix | _chunks(8192) | {"--scheduler-recv-interval": "10"}
        return radix | _chunks(32768) | {"--scheduler-recv-interval": looks}
    return radix | {"--chunked-prefill-size": "16384", "--scheduler-recv-interval": looks}


def _chunks(tokens: int) -> dict[str, Any]:
    return {"--chunked-prefill-size": str(tokens), "--max-prefill-tokens": str(tokens)}
