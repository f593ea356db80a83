"""Logs in SGLang's wordings, written from what a report states, of 2025 or of 2026."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kvplan.core.units import GIB

Row = Mapping[str, Any]


def gib(value: float) -> int:
    return round(value * GIB)


def log_of(row: Row, rank: str = "TP0", new: bool = False) -> str:
    """The lines of one rank, those of 2026 where ``new``."""
    start = "[2025-11-30 12:50:10] "
    prefix = f"[2025-11-30 12:50:10 {rank}] "
    arguments = row.get("server_args")
    head = [f"{start}server_args={_arguments(arguments)}"] if arguments else []
    return "\n".join([*head, *(f"{prefix}{line}" for line in _lines(row, new)), ""])


def _arguments(arguments: Mapping[str, Any]) -> str:
    inside = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    return f"ServerArgs({inside}, tokenizer_mode='auto', kv_events_config=None)"


def _lines(row: Row, new: bool) -> Iterator[str]:
    if row.get("load_begin_avail_gb") is not None:
        yield f"Load weight begin. avail mem={row['load_begin_avail_gb']:.2f} GB"
    for loaded in row.get("load_weight_end") or []:
        if loaded["avail_mem_gb"] is not None:
            yield _loaded(loaded, new)
    if row.get("kv_cache_dtype_logged"):
        yield f"Using KV cache dtype: {row['kv_cache_dtype_logged']}"
    if row.get("swa"):
        full, window = row["swa"]["full_layer_tokens"], row["swa"]["swa_layer_tokens"]
        word = "sliding" if new else "Sliding"
        yield (
            f"Use {word} window memory pool. full_layer_tokens={full}, swa_layer_tokens={window}"
        )
    for states in row.get("mamba") or []:
        yield _states(states)
    for pool in row["kv_lines"]:
        yield _pool(pool)
    if row.get("swa_pool"):
        pool = row["swa_pool"]
        yield (
            f"SWAKVPool mem usage: {pool['mem_usage_gb']:.2f} GB, swa size: {pool['swa_size']}, "
            f"full size: {pool['full_size']}"
        )
    for free in row.get("memory_pool_end_avail_gb") or []:
        yield f"Memory pool end. avail mem={free:.2f} GB"
    for place, graph in enumerate(row.get("cuda_graph_end") or []):
        yield _graph(graph, place, new)
    if row.get("max_total_num_tokens") is not None and row.get("context_len") is not None:
        yield _sized(row)
    yield from (error for error in row.get("errors") or [])


def _loaded(loaded: Mapping[str, Any], new: bool) -> str:
    parts = ["Load weight end."]
    if new:
        parts.append("elapsed=3.94 s,")
    parts.append(f"type={loaded['type']},")
    if loaded["quant"]:
        parts.append(f"quant={loaded['quant']}, bits=4,")
    if loaded["dtype"]:
        parts.append(f"dtype={loaded['dtype']},")
    parts.append(f"avail mem={loaded['avail_mem_gb']:.2f} GB")
    if loaded["mem_usage_gb"] is not None:
        parts[-1] += f", mem usage={loaded['mem_usage_gb']:.2f} GB."
    return " ".join(parts)


def _pool(pool: Mapping[str, Any]) -> str:
    dtype = f"dtype: {pool['dtype']}, " if pool["dtype"] else ""
    text = f"KV Cache is allocated. {dtype}#tokens: {pool['tokens']}"
    if pool["k_gb"] is not None:
        return f"{text}, K size: {pool['k_gb']:.2f} GB, V size: {pool['v_gb']:.2f} GB"
    return f"{text}, KV size: {pool['kv_gb']:.2f} GB" if pool["kv_gb"] is not None else text


def _states(states: Mapping[str, Any]) -> str:
    slots = states["max_mamba_cache_size"]
    text = "Mamba Cache is allocated. "
    text += f"max_mamba_cache_size: {slots}, " if slots is not None else ""
    text += f"conv_state size: {states['conv_state_gb']:.2f}GB, "
    text += f"ssm_state size: {states['ssm_state_gb']:.2f}GB "
    if states["intermediate_ssm_gb"] is not None:
        text += f"intermediate_ssm_state_cache size: {states['intermediate_ssm_gb']:.2f}GB "
        text += f"intermediate_conv_window_cache size: {states['intermediate_conv_gb']:.2f}GB "
    return text


def _graph(graph: Mapping[str, Any], place: int, new: bool) -> str:
    usage = f"mem usage={graph['mem_usage_gb']:.2f} GB"
    free = graph.get("avail_mem_gb")
    end = f" avail mem={free:.2f} GB." if free is not None else ""
    if new:
        step = ("target decode", "draft verify")[min(place, 1)]
        return f"Capture {step} CUDA graph end. elapsed=4.76 s, {usage},{end}"
    step = ("", "draft ")[min(place, 1)]
    return f"Capture {step}cuda graph end. Time elapsed: 5.37 s. {usage}.{end}"


def _sized(row: Row) -> str:
    free = row.get("available_gpu_mem_gb")
    text = (
        f"max_total_num_tokens={row['max_total_num_tokens']}, "
        f"chunked_prefill_size={row['chunked_prefill_size']}, "
        f"max_prefill_tokens={row['max_prefill_tokens']}, "
        f"max_running_requests={row['max_running_requests']}, context_len={row['context_len']}"
    )
    return f"{text}, available_gpu_mem={free:.2f} GB" if free is not None else text


def expected(row: Row) -> dict[str, Any]:
    """What the target's and the draft's lines state, by fact."""
    wanted: dict[str, Any] = {}
    for place, loaded in enumerate(row.get("load_weight_end") or []):
        prefix = "draft_" if place else ""
        if loaded["avail_mem_gb"] is None:
            continue
        if loaded["mem_usage_gb"] is not None:
            wanted[f"{prefix}weights_bytes"] = gib(loaded["mem_usage_gb"])
        wanted[f"{prefix}free_after_load_bytes"] = gib(loaded["avail_mem_gb"])
        wanted[f"{prefix}model_class"] = loaded["type"]
    kinds = ["swa_", ""] if row.get("swa") else [""]
    for place, pool in enumerate(row["kv_lines"]):
        prefix = kinds[place] if place < len(kinds) else "draft_"
        wanted[f"{prefix}kv_tokens"] = pool["tokens"]
        if pool["k_gb"] is not None:
            k, v = gib(pool["k_gb"]), gib(pool["v_gb"])
            wanted |= {f"{prefix}k_bytes": k, f"{prefix}v_bytes": v, f"{prefix}kv_bytes": k + v}
        elif pool["kv_gb"] is not None:
            wanted[f"{prefix}kv_bytes"] = gib(pool["kv_gb"])
    if row.get("swa_pool"):
        wanted["kv_bytes"] = gib(row["swa_pool"]["mem_usage_gb"])
    for states in row.get("mamba") or []:
        wanted["state_slots"] = states["max_mamba_cache_size"]
        wanted["ssm_state_bytes"] = gib(states["ssm_state_gb"])
        wanted["conv_state_bytes"] = gib(states["conv_state_gb"])
    for place, graph in enumerate((row.get("cuda_graph_end") or [])[:1]):
        wanted["cuda_graph_bytes"] = gib(graph["mem_usage_gb"]) if not place else 0
    if row.get("load_begin_avail_gb") is not None:
        wanted["free_before_load_bytes"] = gib(row["load_begin_avail_gb"])
    if row.get("max_total_num_tokens") is not None and row.get("context_len") is not None:
        wanted["kv_tokens"] = row["max_total_num_tokens"]
        wanted["max_model_len"] = row["context_len"]
        wanted["max_running_requests"] = row["max_running_requests"]
    return {name: value for name, value in wanted.items() if value is not None}
