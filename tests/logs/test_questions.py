"""Questions of people who quote log lines: what ``explain`` tells of the lines is what was settled."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import kvplan
from kvplan.core.units import GIB
from kvplan.planning.explain import ExplainAnswer

ROWS = Path(__file__).parents[1] / "reference" / "questions" / "questions.jsonl"
VERSION = "vLLM API server version "
SHORT = (
    "To serve at least one request with the models's max seq len ({0}), ({1} GiB KV cache is "
    "needed, which is larger than the available KV cache memory ({2} GiB). Based on the available "
    "memory, the estimated maximum model length is {3}."
)
OLD_SHORT = (
    "The model's max seq len ({0}) is larger than the maximum number of tokens that can be stored "
    "in KV cache ({1})."
)
GRAPHS = (
    "CUDA graph memory profiling is enabled (default since v0.21.0). The current "
    "--gpu-memory-utilization={0} is equivalent to --gpu-memory-utilization={1} without CUDA graph "
    "memory profiling. To maintain the same, increase --gpu-memory-utilization to {2}."
)


def pool(tokens: int, length: int, concurrency: float, *more: str) -> str:
    """The lines of a pool."""
    return "\n".join(
        [
            *more,
            f"GPU KV cache size: {tokens:,} tokens",
            f"Maximum concurrency for {length:,} tokens per request: {concurrency:.2f}x",
            "",
        ]
    )


LOGS: dict[str, tuple[str, ...]] = {
    "p002": ("# GPU blocks: 229, # CPU blocks: 512\n" + OLD_SHORT.format(4096, 3664),),
    "p003": (OLD_SHORT.format(32768, 7344) + "\n",),
    "p013": (
        pool(230528, 100000, 2.31, "Available KV cache memory: 10.55 GiB"),
        "Available KV cache memory: 5.59 GiB\n" + SHORT.format(221000, 10.12, 5.59, 122080),
    ),
    "p017": (
        "Estimated CUDA graph memory: 0.36 GiB total\n" + GRAPHS.format(0.82, 0.8048, 0.8352),
    ),
    "p018": (pool(245840, 2304, 106.7), pool(769888, 2304, 334.2)),
    "p037": (pool(290864, 32768, 33.04, VERSION + "0.19.0"),),
    "p038": (pool(75840, 120000, 2.48, VERSION + "0.11.0", "Available KV cache memory: 2.30 GiB"),),
    "p039": ("Setting attention block size to 7808 tokens to ensure that\n",),
    "p040": (pool(260006, 8192, 31.74), pool(1077542, 262144, 4.11)),
    "p040 fp8": (pool(1077542, 262144, 4.11), pool(1853358, 262144, 7.07)),
    "p043": ("max_num_seqs (1024) exceeds available Mamba cache blocks (969)\n",),
    "p043 rx": ("max_num_seqs (256) exceeds available Mamba cache blocks (161)\n",),
    "p044": ("max_num_seqs (1024) exceeds available Mamba cache blocks (856)\n",),
    "p050": (pool(21422408, 1048576, 20.43), pool(164521574, 1048576, 156.9)),
    "p051": (
        "Initializing an LLM engine (v0.7.2) with config: model="
        "'deepseek-ai/DeepSeek-R1-Distill-Qwen-14B', max_seq_len=131072, tensor_parallel_size=2\n"
        "model weights take 13.95GiB; non_torch_memory takes 0.25GiB; PyTorch activation peak memory "
        "takes 0.19GiB; the rest of the memory reserved for KV Cache is 8.69GiB.\n"
        + OLD_SHORT.format(131072, 81536),
    ),
    "p052": (
        ("Initializing an LLM engine (v0.4.0) with config: model="
        "'deepseek-ai/deepseek-coder-6.7b-instruct', tensor_parallel_size=2, max_seq_len=4096\n"
        "# GPU blocks: 507, # CPU blocks: 512\n"),
    ),
    "p064": (pool(1446932, 32768, 44.16), pool(4805405, 32768, 146.65)),
    "p124": (
        "Estimated CUDA graph memory: 6.24 GiB total\n" + GRAPHS.format(0.62, 0.5413, 0.6987),
    ),
    "p135": (
        ("max_total_num_tokens=2086558, chunked_prefill_size=8192, max_prefill_tokens=16384, "
        "max_running_requests=33, context_len=256000, available_gpu_mem=17.22 GB\n"),
    ),
}  # fmt: skip
BESIDE: dict[str, dict[str, Any]] = {
    "p002": {"model": "llama-2-7b", "gpu": "rtx-4090"},
    "p003": {"model": "Qwen/Qwen1.5-7B-Chat", "gpu": "rtx-4090"},
    "p013": {"model": "qwen3-30b-a3b", "gpu": "l40s"},
    "p051": {"gpu": "rtx-4090"},
    "p052": {"gpu": "t4"},
}


@cache
def explained(name: str) -> ExplainAnswer:
    """The answer to a row's lines."""
    return kvplan.explain(*LOGS[name], offline=True, **BESIDE.get(name, {}))


def inferred(name: str, figure: str) -> float:
    """A figure that follows, of the two logs together where there are two."""
    answer = explained(name)
    both = answer.compared.inferred if answer.compared else ()
    return next(float(row.value) for row in (*both, *answer.inferred) if row.name == figure)


def finding(name: str, code: str, figure: str) -> float:
    """A number of a finding."""
    found = next(f for f in explained(name).findings if f.code == code)
    return float(found.numbers[figure])


def ratio(name: str, figure: str) -> float:
    """A figure of the second log over that of the first."""
    compared = explained(name).compared
    assert compared is not None
    return next(second / first for key, first, second in compared.figures if key == figure)


def lost_gib(name: str) -> float:
    """What the pool lost from the first log to the second."""
    compared = explained(name).compared
    assert compared is not None
    _, first, second = next(term for term in compared.terms if term[0] == "kv_pool")
    return ((first or 0) - (second or 0)) / GIB


def planned_token_bytes(name: str) -> float:
    """Bytes of a token as the plan beside the log has them."""
    predicted = explained(name).predicted
    assert predicted is not None
    length = predicted.question.asked.context
    return predicted.plan.sequence_bytes(length) / length


STATES = "states_exceed_pool"
# The row's figure, what explain tells, and by how much the printed digits may differ.
FIGURES: dict[str, tuple[Callable[[], float], float]] = {
    "p002.tokens": (lambda: finding("p002", "length_exceeds_pool", "kv_tokens"), 0),
    "p002.bytes_per_token": (lambda: planned_token_bytes("p002"), 0),
    "p002.pool_gib": (lambda: inferred("p002", "kv_pool_bytes") / GIB, 0.005),
    "p003.tokens": (lambda: finding("p003", "length_exceeds_pool", "kv_tokens"), 0),
    "p003.pool_gib": (lambda: inferred("p003", "kv_pool_bytes") / GIB, 0.0005),
    "p003.needed_gib_for_32768": (lambda: inferred("p003", "needed_kv_bytes") / GIB, 0),
    "p013.bytes_per_token_fp8": (lambda: planned_token_bytes("p013"), 3),
    "p013.activation_growth_gib": (lambda: lost_gib("p013"), 0.005),
    "p017.delta": (lambda: inferred("p017", "cuda_graph_share"), 0.00005),
    "p017.total_gib": (lambda: inferred("p017", "total_gpu_bytes") / GIB, 0.05),
    "p018.ratio": (lambda: ratio("p018", "kv_tokens"), 0.005),
    "p037.true_tokens": (lambda: inferred("p037", "usable_kv_tokens"), 0.5),
    "p037.ratio": (lambda: inferred("p037", "usable_over_printed"), 0.005),
    "p038.true_tokens": (lambda: inferred("p038", "usable_kv_tokens"), 0),
    "p038.ratio": (lambda: inferred("p038", "usable_over_printed"), 0.005),
    "p039.block_tokens": (
        lambda: finding("p039", "large_attention_block", "attention_block_size"), 0,
    ),
    "p040.fixed_over_slope_tokens": (lambda: inferred("p040", "fixed_over_slope_tokens"), 5),
    "p040.fp8_gain": (lambda: ratio("p040 fp8", "max_concurrency"), 0.005),
    "p043.blocks.h100": (lambda: finding("p043", STATES, "state_blocks"), 0),
    "p043.blocks.rx7900": (lambda: finding("p043 rx", STATES, "state_blocks"), 0),
    "p044.blocks": (lambda: finding("p044", STATES, "state_blocks"), 0),
    "p050.ratio": (lambda: ratio("p050", "max_concurrency"), 0.005),
    "p051.per_rank_bytes": (lambda: planned_token_bytes("p051"), 0),
    "p051.tokens_if_this_rank": (
        lambda: finding("p051", "another_rank_decides", "tokens_of_this_rank"), 16,
    ),
    "p051.tokens_used": (lambda: finding("p051", "another_rank_decides", "kv_tokens"), 0),
    "p051.implied_other_rank_gib": (
        lambda: finding("p051", "another_rank_decides", "other_rank_bytes") / GIB, 0.01,
    ),
    "p052.tokens": (lambda: inferred("p052", "kv_tokens"), 0),
    "p052.gib_per_rank": (lambda: inferred("p052", "kv_pool_bytes") / GIB, 0.005),
    "p064.ratio": (lambda: ratio("p064", "kv_tokens"), 0.005),
    "p124.delta": (lambda: inferred("p124", "cuda_graph_share"), 0.00005),
    "p124.total_gib": (lambda: inferred("p124", "total_gpu_bytes") / GIB, 0.05),
    "p135.full_length_requests": (lambda: inferred("p135", "full_length_requests"), 0.005),
}  # fmt: skip
# Figures of rows that quote lines, and why their lines do not tell them.
EXCEPTIONS = {
    "p013.tokens_at_10_55": "printed by the log itself",
    "p018.implied_max_model_len": "printed in the line of the concurrency",
    "p019.estimate_gib": "printed by the log; that it is implausible is tested below",
    "p025.over_budget_gib": "the lines are a person's sums, not an engine's",
    "p039.fixed_cost_tokens": "a gauge of a running server, no line of the start",
    "p039.max_requests": "follows of the gauge",
    "p041.slope_bytes": "fitted to more starts than the two that are quoted",
    "p041.fixed_bytes": "fitted to more starts than the two that are quoted",
    "p044.chosen": "a maintainer's choice",
    "p052.gib_total": "twice that of a rank",
}


def settled() -> dict[str, float]:
    found: dict[str, float] = {}
    for line in ROWS.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        for key, value in (row["answer"].get("numbers") or {}).items():
            inner = value.items() if isinstance(value, dict) else [("", value)]
            for name, figure in inner:
                path = f"{row['id']}.{key}" + (f".{name}" if name else "")
                found[path] = figure
    return found


@pytest.mark.parametrize("figure", FIGURES)
def test_a_settled_figure(figure: str) -> None:
    """What the lines tell is the settled figure, within the digits that it was printed with."""
    told, digits = FIGURES[figure]

    assert settled()[figure] == pytest.approx(told(), abs=digits + 1e-9, rel=0)


def test_exceptions_are_figures() -> None:
    """Each exception is a figure of the reference that is not tested above."""
    assert set() == set(EXCEPTIONS) & set(FIGURES)
    assert set() == set(EXCEPTIONS) - set(settled())


def test_an_implausible_estimate() -> None:
    """118.65 GiB of graphs is flagged, with the switch that turns the estimate off."""
    answer = kvplan.explain(
        "Estimated CUDA graph memory: 118.65 GiB total\n"
        "ValueError: No available memory for the cache blocks. Try increasing it\n"
    )
    found = {f.code: f.message for f in answer.findings}

    assert {"no_cache_memory", "graph_estimate_implausible"} == set(found)
    assert "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=0" in found["graph_estimate_implausible"]
