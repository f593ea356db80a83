"""The lines that a start of vLLM prints, by version, to hold against its log."""

from __future__ import annotations

from kvplan.core.units import GIB
from kvplan.engines.vllm.pool import Printed
from kvplan.engines.vllm.rules import Rules

V0_SWAP_BYTES = 4 * GIB  # --swap-space


def graph_lines(graphs: int, total: int, utilization: float) -> tuple[str, str]:
    """The share of a card that graphs take, as it is converted between ways to count it.

    v1/worker/gpu_worker.py, determine_available_memory (0.27.0).
    """
    share = graphs / total
    more = min(utilization + share, 1.0)
    return (
        (
            f"The current --gpu-memory-utilization={utilization:.4f} is equivalent to "
            f"--gpu-memory-utilization={utilization - share:.4f} without CUDA graph memory "
            "profiling."
        ),
        f"To maintain the same effective KV cache size as before, increase it to {more:.4f}.",
    )


def lines(
    pool: int,
    num_blocks: int,
    block: int,
    figures: Printed,
    max_len: int,
    *,
    platform: str,
    swap: int,
    dcp: int,
    rules: Rules,
    paged: bool,
) -> tuple[str, ...]:
    """What follows the memory profile.

    v1/worker/gpu_worker.py and v1/core/kv_cache_utils.py; in V0 worker/worker.py and
    executor/executor_base.py.
    """
    if not paged:
        return (
            f"# GPU blocks: {num_blocks}, # CPU blocks: {swap // block}",
            f"Maximum concurrency for {max_len} tokens per request: {figures.concurrency:.2f}x",
        )
    available = f"Available KV cache memory: {round(pool / GIB, 2)} GiB"
    device = "GPU" if platform in ("cuda", "rocm") or not rules.one_line else platform.upper()
    size = f"{device} KV cache size: {figures.tokens:,} tokens"
    concurrency = (
        f"Maximum concurrency for {max_len:,} tokens per request: {figures.concurrency:.2f}x"
    )
    if platform == "cpu":  # v1/worker/cpu_worker.py says what is set in words of its own
        return (f"{size}, {concurrency}",) if rules.one_line else (size, concurrency)
    if rules.one_line:
        return available, f"{size}, {concurrency}"
    if dcp > 1 and not rules.tokens_by_concurrency:
        said = f"Multiplying the GPU KV cache size by the dcp_world_size {dcp}."
        return available, said, size, concurrency
    return available, size, concurrency
