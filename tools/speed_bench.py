"""How TensorRT-LLM's own pages of maximum throughput were run, where that decides the figure.

Read in docs/source/performance/perf-overview.md of 1.0 (its commands, its table of requests) and in
tensorrt_llm/bench of the same release: build/tuning.py (finetune_setting) chooses the largest batch
and the tokens of a step by what the cache holds, benchmark/utils/general.py (get_settings) leaves
room for a whole prompt, as prompts are not cut by default.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import Final

from kvplan.core.errors import KvplanError
from kvplan.engines.base import Engine, EnginePlan
from tools.speed_rows import Row

FRACTION: Final = 0.95  # "in many cases", the default where that does not fit
MOST_SEQUENCES: Final = 4096
MOST_TOKENS: Final = 32768
LEAST_SEQUENCES: Final = 64
LEAST_TOKENS: Final = 2048
# Requests of a run by the lengths of prompt and output; all are there at its beginning.
REQUESTS: Final = {
    (128, 128): 30000, (128, 2048): 3000, (128, 4096): 1500, (1000, 2000): 1500,
    (2048, 128): 3000, (2048, 2048): 1500, (5000, 500): 1500, (1000, 1000): 3000,
    (500, 2000): 3000, (20000, 2000): 1000, (1024, 1024): 3000, (8192, 1024): 1500,
    (1024, 8192): 1500, (32768, 1024): 1000, (1024, 32768): 1000,
}  # fmt: skip
# Batches that are captured as graphs (cuda_graph_config of the page's llm_options.yml), to which
# smaller ones are filled up; the largest batch is one of them (model_engine.py,
# _filter_cuda_graph_batch_sizes).
CAPTURED: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256, 384, 512, 1024, 2048, 4096)
BATCH: Final = "--max-batch-size"


def requests_of(row: Row) -> int | None:
    """How many requests a row's run had; None where its page does not say."""
    return REQUESTS.get((round(row.prompt), round(row.output)))


def sizes_of(plan: EnginePlan) -> tuple[int, ...]:
    """The batches that a rank's decode steps are filled up to."""
    largest = int(plan.launch[BATCH])
    return (*(size for size in CAPTURED if size < largest), largest)


def benched(engine: Engine, plan: EnginePlan, row: Row) -> EnginePlan:
    """The plan with the benchmark's settings; as it is where it does not start with them."""
    asked = plan.asked
    try:
        flags = engine.flags.parse({"--free-gpu-memory-fraction": str(FRACTION)})
        flags |= {BATCH: MOST_SEQUENCES}
        wider = engine.plan(plan.model, plan.node, replace(asked, flags={**asked.flags, **flags}))
        sequences, tokens = settings(wider.capacity(asked.context).sequences, row)
        flags |= {BATCH: sequences * row.pp, "--max-num-tokens": tokens}
        found = engine.plan(plan.model, plan.node, replace(asked, flags={**asked.flags, **flags}))
    except KvplanError:
        return plan
    return found if found.starts else plan


def settings(held: int, row: Row) -> tuple[int, int]:
    """The largest batch and the tokens of a step, for as many sequences as the cache holds."""
    batch = min(held, MOST_SEQUENCES) / row.pp
    tokens = min(batch * (1 + row.prompt / row.output), MOST_TOKENS)
    return _sequences(batch), max(_tokens(tokens), round(row.prompt) + _sequences(batch))


def _sequences(batch: float) -> int:
    if batch < 256:
        return max(LEAST_SEQUENCES, 32 * ceil(batch / 32))
    step = 128 if batch < 1024 else 256
    return step * ceil(batch / step)


def _tokens(tokens: float) -> int:
    if tokens < 4096:
        return max(LEAST_TOKENS, 256 * ceil(tokens / 256))
    step = 512 if tokens < 8192 else 1024
    return step * ceil(tokens / step)
