"""Logs in TensorRT-LLM's wordings, written from what a report states: engines of 2024, and 2025."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kvplan.core.units import GIB, MIB

Row = Mapping[str, Any]
TAG = "[TensorRT-LLM][INFO] "


def log_of(row: Row, *, bracketed: bool, trial: bool = False) -> str:
    """``bracketed``: the line of 2025 that has all in brackets; ``trial``: a trial pool first."""
    lines = list(_lines(row, bracketed))
    if trial:
        lines = [*_pool(row, 0.56, 8224, 257, bracketed), *lines]
    head = f"[TensorRT-LLM] TensorRT-LLM version: {row['version']}\n" if row["version"] else ""
    return head + "".join(f"{TAG}{line}\n" for line in lines)


def _lines(row: Row, bracketed: bool) -> Iterator[str]:
    if row["engine_size_mib"]:
        yield f"Loaded engine size: {row['engine_size_mib']} MiB"
    if row["exec_context_mib"]:
        yield (
            f"[MemUsageChange] Allocated {row['exec_context_mib']:.2f} MiB "
            "for execution context memory."
        )
    if row["runtime_buffers"]:
        yield f"[MemUsageChange] Allocated {row['runtime_buffers']} GPU memory for runtime buffers."
    if row["decoder"]:
        yield f"[MemUsageChange] Allocated {row['decoder']} GPU memory for decoder."
    if row["total_gib"]:
        yield (
            "Memory usage when calculating max tokens in paged kv cache: total: "
            f"{row['total_gib']:.2f} GiB, available: {row['available_gib']:.2f} GiB"
        )
    if row["max_tokens"]:
        blocks = row["blocks_primary"]
        yield from _pool(row, row["allocated_gib"], row["max_tokens"], blocks, bracketed)


def _pool(row: Row, gib: float, tokens: int, blocks: int | None, bracketed: bool) -> Iterator[str]:
    size, window = row["tokens_per_block"], row["window_size"]
    if blocks and bracketed and size and window:
        text = (
            f"Max KV cache blocks per sequence: 65 [window size={window}], tokens per block={size}, "
            f"primary blocks={blocks}, secondary blocks={row['blocks_secondary']}"
        )
        yield text + (f", max sequence length={row['max_seq_len']}" if row["max_seq_len"] else "")
    elif blocks:
        yield f"Number of blocks in KV cache primary pool: {blocks}"
        yield (
            f"Number of blocks in KV cache secondary pool: {row['blocks_secondary']}, "
            "onboard blocks to primary memory before reuse: true"
        )
        yield "Max KV cache pages per sequence: 32"
    if size:
        yield f"Number of tokens per block: {size}."
    yield f"[MemUsageChange] Allocated {gib:.2f} GiB for max tokens in paged KV cache ({tokens})."


def expected(row: Row) -> dict[str, Any]:
    """The facts; "MB" and "GB" of buffers are binary too."""
    wanted: dict[str, Any] = {
        "kv_tokens": row["max_tokens"],
        "kv_bytes": _gib(row["allocated_gib"]) or None,
        "total_gpu_bytes": _gib(row["total_gib"]),
        "num_gpu_blocks": row["blocks_primary"],
        "num_host_blocks": row["blocks_secondary"],
        "block_size": row["tokens_per_block"],
    }
    if row["total_gib"]:
        wanted["free_gpu_bytes"] = _gib(row["available_gib"])
    if row["engine_size_mib"]:
        wanted["weights_bytes"] = row["engine_size_mib"] * MIB
    if row["exec_context_mib"]:
        wanted["execution_context_bytes"] = round(row["exec_context_mib"] * MIB)
    return {name: value for name, value in wanted.items() if value is not None}


def _gib(value: float | None) -> int | None:
    return None if value is None else round(value * GIB)
