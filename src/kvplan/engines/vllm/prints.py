"""The lines that a start of vLLM prints, by version, to hold against its log."""

from __future__ import annotations

from kvplan.core.units import GIB
from kvplan.engines.vllm.pool import Printed
from kvplan.engines.vllm.rules import Rules

V0_SWAP_BYTES = 4 * GIB  # --swap-space


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
