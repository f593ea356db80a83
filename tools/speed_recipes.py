"""How the servers of published loops were started, where a row does not say it.

InferenceX: read in the project's own scripts (benchmarks/, github.com/SemiAnalysisAI/InferenceX),
by engine, model and card; a flag is set here only as a script sets it. Clients: ``--num-prompts``
ten times ``--max-concurrency`` after ``--num-warmups`` of twice that, ``--request-rate inf``, all
clients at once at the beginning.

aiconfigurator's validation: the servers are what its generator writes
(src/aiconfigurator/generator/rule_plugin/, and cli/backends/trtllm.py of its first release, say the
same), and its clients ten prompts each after two to warm up (eval/benchmarks/genai_perf_runner.py),
all at commit 27332a5e7 of github.com/ai-dynamo/aiconfigurator.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from kvplan.core.errors import KvplanError
from kvplan.core.version import Version
from kvplan.engines.base import EnginePlan
from kvplan.engines.registry import engine_of
from tools.speed_names import SOURCE_OF_LOOPS
from tools.speed_rows import NOMINAL, Row

LENGTH_1K: Final = 1024
SPARE: Final = 1500  # tokens that the generator leaves beside a prompt
OVERLAPS_SINCE: Final = Version.parse("1.1")
MIXED_SINCE: Final = Version.parse("0.5.6")


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
    if row.source != SOURCE_OF_LOOPS:
        return {}
    if not row.drawn:
        return _generated(row)
    prompt, output = round(row.prompt / NOMINAL), round(row.output / NOMINAL)
    if row.engine == "tensorrt-llm":
        return _tensorrt(row, prompt, output)
    if row.engine == "sglang" and row.group == "DeepSeek V3":
        return _sglang(row)
    if row.engine == "sglang" and row.group == "Qwen3.5 397B-A17B":
        return _qwen(row)
    if row.engine == "vllm" and row.group == "Llama 3 70B":
        # 70b_fp8_h200_slurm.sh, 70b_fp8_b200_docker.sh, 70b_fp4_b200_docker.sh
        ahead = {"--async-scheduling": True} if row.device == "b200" else {}
        return {"--max-num-batched-tokens": "8192"} | ahead
    if row.engine == "vllm" and row.group == "gpt-oss 120B":
        # gptoss_fp4_h200.sh, gptoss_fp4_h200_slurm.sh
        running = {"--max-num-seqs": str(row.concurrency), "--async-scheduling": True}
        return {"--max-num-batched-tokens": "8192"} | running
    if row.engine == "vllm" and row.group == "Kimi K2":
        # kimik2.5_fp4_b200.sh, kimik2.5_fp4_b300.sh, kimik2.5_int4_b200.sh
        return {"--max-num-seqs": str(row.concurrency)}
    return {}


def _generated(row: Row) -> dict[str, Any]:
    """What aiconfigurator's generator sets: as many sequences as there are clients, and the tokens
    of a step for one prompt beside them.
    """
    batch = row.concurrency
    tokens = batch + round(row.prompt) + SPARE
    if row.engine == "vllm":
        return {"--max-num-seqs": str(batch), "--max-num-batched-tokens": str(tokens)}
    if row.engine == "tensorrt-llm":
        # extra_engine_args.1.0.0rc3.yaml.j2: enable_chunked_prefill false unless it is set, and in
        # the first release disable_overlap_scheduler true; trtllm.rule sets it to false since.
        sizes = {"--max-batch-size": str(batch), "--max-num-tokens": str(tokens)}
        first = row.version is not None and Version.parse(row.version) < OVERLAPS_SINCE
        return sizes | ({"--disable-overlap-scheduler": True} if first else {})
    if row.engine == "sglang":
        most = str(round(row.prompt) + SPARE)
        return {"--max-running-requests": str(batch), "--max-prefill-tokens": most} | _mixed(row)
    return {}


def _mixed(row: Row) -> dict[str, Any]:
    """Chunks ride with decoding since the generator's commit 07a377923 of 2026-01-19; the templates
    of 0.5.6.post2 and later are newer (c46a56b02), those of 0.5.1.post1 older.
    """
    found = row.version is not None and Version.parse(row.version) >= MIXED_SINCE
    return {"--enable-mixed-chunk": True} if found else {}


def _tensorrt(row: Row, prompt: int, output: int) -> dict[str, Any]:
    if row.group == "Llama 3 70B":
        # 70b_fp8_b200_trt_slurm.sh, 70b_fp4_b200_trt_slurm.sh, 70b_fp8_h200_trt_slurm.sh
        held = prompt == output == LENGTH_1K and row.tp < 8
        return {"--max-num-tokens": "16384", **(_wait(20, 0.9) if held else {})}
    if row.group == "gpt-oss 120B":
        # gptoss_fp4_h200_trt.sh
        return {"--max-num-tokens": "20000", "--max-batch-size": str(row.concurrency)}
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
        return radix | _memory(0.82) | _chunks(32768)
    looks = "30" if row.concurrency >= 16 else "10"
    if row.quantization == "fp8":
        if row.tp == 4:
            return radix | _memory(0.95) | _chunks(8192) | {"--scheduler-recv-interval": "10"}
        return radix | _memory(0.82) | _chunks(32768) | {"--scheduler-recv-interval": looks}
    return (
        radix
        | _memory(0.85)
        | {"--chunked-prefill-size": "16384", "--scheduler-recv-interval": looks}
    )


def _qwen(row: Row) -> dict[str, Any]:
    radix = {"--disable-radix-cache": True}
    if row.device == "h200":
        # qwen3.5_fp8_h200.sh
        running = {"--max-running-requests": "128"}
        return radix | _memory(0.8) | {"--chunked-prefill-size": "16384"} | running
    if row.quantization == "fp8":
        # qwen3.5_fp8_b300.sh
        running = {"--max-running-requests": str(row.concurrency)}
        return radix | _memory(0.8) | running | _chunks(16384) | {"--scheduler-recv-interval": "10"}
    # qwen3.5_bf16_b300.sh, qwen3.5_fp4_b300.sh
    looks = {"--scheduler-recv-interval": "30" if row.concurrency >= 16 else "10"}
    return radix | _memory(0.82) | _chunks(32768) | looks | {"--max-running-requests": "128"}


def _memory(share: float) -> dict[str, Any]:
    return {"--mem-fraction-static": str(share)}


def _chunks(tokens: int) -> dict[str, Any]:
    return {"--chunked-prefill-size": str(tokens), "--max-prefill-tokens": str(tokens)}
