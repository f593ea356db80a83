"""Logs in vLLM's wordings, written from known facts: a run's facts in, its version's lines out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kvplan.core.version import Version

Row = Mapping[str, Any]
# What a report states and the fact that its line has to read back to.
SIZES = {
    "weights_gib": "weights_bytes",
    "activation_peak_gib": "activation_peak_bytes",
    "non_torch_gib": "non_torch_bytes",
    "cuda_graph_gib": "cuda_graph_bytes",
    "total_gpu_gib": "total_gpu_bytes",
    "available_kv_gib": "available_kv_bytes",
}
FIGURES = {
    "kv_tokens": "kv_tokens",
    "gpu_blocks": "num_gpu_blocks",
    "max_concurrency": "max_concurrency",
    "max_concurrency_tokens": "max_concurrency_tokens",
    "max_model_len": "max_model_len",
    "tp": "tensor_parallel_size",
    "gpu_memory_utilization": "gpu_memory_utilization",
    "model": "model",
}


def era(text: str) -> Version:
    """A report's version; builds named by date or commit are newer than 0.20."""
    version = Version.parse(text.split("/", maxsplit=1)[0].split("+", maxsplit=1)[0])
    return Version.parse("0.21.0") if version < Version.parse("0.2.0") else version


def prefix(version: Version, file: str, worker: bool = False) -> str:
    """What stands before a message."""
    stamp = "INFO 08-01 10:11:12"
    if version < Version.parse("0.8.0"):
        return f"{stamp} {file}] "
    if version < Version.parse("0.10.0"):
        return f"{stamp} [{file}] "
    name = "EngineCore_0" if version < Version.parse("0.10.2") else "EngineCore_DP0"
    if version >= Version.parse("0.18.0"):
        name = "EngineCore"
    return f"\x1b[1;36m({'Worker_TP0' if worker else name} pid=159)\x1b[0;0m {stamp} [{file}] "


def settings_lines(row: Row, version: Version, said: str) -> Iterator[str]:
    """The version, the arguments, the engine's config."""
    given = {
        "model": row["model"],
        "max_model_len": row["max_model_len"],
        "tensor_parallel_size": row["tp"],
        "gpu_memory_utilization": row["gpu_memory_utilization"],
    }
    given = {name: value for name, value in given.items() if value is not None}
    start = prefix(version, "api_server.py:1977").replace("EngineCore_DP0", "APIServer")
    yield f"{start}vLLM API server version {said}"
    if version < Version.parse("0.9.0"):
        pairs = ", ".join(f"{name}={value!r}" for name, value in given.items())
        yield f"{start}args: Namespace(host=None, {pairs}, dispatch_function=<function serve at 0x7>)"
    else:
        yield f"{start}non-default args: {given | {'compilation_config': {'level': 3, 'model': 'x'}}!r}"
    engine = "an LLM" if version < Version.parse("0.8.0") else "a V1 LLM"
    config = f"model={row['model']!r}, speculative_config=None, tokenizer={row['model']!r}"
    if row["max_model_len"]:
        config += f", max_seq_len={row['max_model_len']}, tensor_parallel_size={row['tp'] or 1}"
    yield (
        f"{prefix(version, 'llm_engine.py:237')}Initializing {engine} engine (v{said}) with config: "
        f"{config}, kv_cache_dtype=auto, override_pooler_config=Pooler(a=1, b=[2, 3])"
    )


def memory_lines(row: Row, version: Version) -> Iterator[str]:
    """Weights, profile and graphs."""
    weights, graphs, available = row["weights_gib"], row["cuda_graph_gib"], row["available_kv_gib"]
    parts = (weights, row["non_torch_gib"], row["activation_peak_gib"])
    total, share = row["total_gpu_gib"], row["gpu_memory_utilization"]
    worker = prefix(version, "gpu_worker.py:298", worker=True)
    first_v1 = version < Version.parse("0.8.0")
    if weights is not None and version < Version.parse("0.8.0"):
        yield f"{prefix(version, 'model_runner.py:1099')}Loading model weights took {weights} GB"
    elif weights is not None:
        memory = "" if version < Version.parse("0.12.0") else " memory"
        yield (
            f"{prefix(version, 'gpu_model_runner.py:2007')}Model loading took {weights} GiB{memory} "
            "and 4.05 seconds"
        )
    if total is not None and share is not None and first_v1:
        yield (
            f"{worker}the current vLLM instance can use total_gpu_memory ({total}GiB) x "
            f"gpu_memory_utilization ({share}) = {total * share:.2f}GiB"
        )
    if first_v1 and available is not None and None not in parts:
        yield (
            f"{worker}model weights take {parts[0]}GiB; non_torch_memory takes {parts[1]}GiB; PyTorch "
            f"activation peak memory takes {parts[2]}GiB; the rest of the memory reserved for KV Cache "
            f"is {available}GiB."
        )
    elif None not in parts:
        yield (
            f"{worker}Memory profiling takes 13.56 seconds. Total non KV cache memory: "
            f"{sum(parts):.2f}GiB; torch peak memory increase: {parts[2]}GiB; non-torch forward "
            f"increase memory: {parts[1]}GiB; weights memory: {parts[0]}GiB."
        )
    if not first_v1 and available is not None:
        yield f"{worker}Available KV cache memory: {available} GiB"
    if graphs is not None:
        yield (
            f"Capturing CUDA graphs (decode, FULL):  89%|████ | 31/35 [00:04<00:00, 2.68it/s]{worker}"
            f"Graph capturing finished in 7 secs, took {graphs} GiB"
        )
    if total is not None and share is not None and not first_v1:
        yield (
            f"{worker}Free memory on device ({total}/{total} GiB) on startup. Desired GPU memory "
            f"utilization is ({share}, {total * share:.2f} GiB)."
        )


def pool_lines(row: Row, version: Version) -> Iterator[str]:
    """Blocks, tokens, concurrency."""
    utils = prefix(version, "kv_cache_utils.py:864")
    tokens, length = row["kv_tokens"], row["max_concurrency_tokens"]
    if version < Version.parse("0.8.0"):
        if row["gpu_blocks"] is not None:
            yield f"{utils}# GPU blocks: {row['gpu_blocks']}, # CPU blocks: 2048"
        if length is not None and row["max_concurrency"] is not None:
            yield (
                f"{utils}Maximum concurrency for {length} tokens per request: "
                f"{row['max_concurrency']}x"
            )
        return
    if row["gpu_blocks"] is not None:
        yield (
            f"{prefix(version, 'core.py:100')}vllm cache_config_info with initialization after "
            f"num_gpu_blocks is: {row['gpu_blocks']}"
        )
    concurrency = row["max_concurrency"]
    said = [f"GPU KV cache size: {tokens:,} tokens"] if tokens is not None else []
    if length is not None and concurrency is not None:
        said.append(f"Maximum concurrency for {length:,} tokens per request: {concurrency:.2f}x")
    if version >= Version.parse("0.27.0"):
        yield f"{utils}{', '.join(said)}"
    else:
        yield from (utils + one for one in said)


def log_of(row: Row, said: str) -> str:
    """A report's start as its version prints it."""
    version = era(said)
    lines = [
        *settings_lines(row, version, said),
        *memory_lines(row, version),
        *pool_lines(row, version),
    ]
    if row["error"]:
        lines.append(f"{prefix(version, 'core.py:700')}{row['error']}")
    return "\n".join(lines) + "\n"
