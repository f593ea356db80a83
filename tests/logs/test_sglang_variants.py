"""Lines of SGLang of every age, one wording each."""

from __future__ import annotations

from typing import Any

import pytest

from kvplan.core.units import GIB
from kvplan.logs.facts import Start
from kvplan.logs.read import read_log

PREFIX = "[2025-11-30 12:50:10 TP0] "


def gib(value: float) -> int:
    return round(value * GIB)


def start_of(*lines: str) -> Start:
    start = read_log("".join(f"{PREFIX}{line}\n" for line in lines).encode()).start
    assert start is not None
    return start


def said(*lines: str) -> dict[str, Any]:
    return {fact.name: fact.value for fact in start_of(*lines).facts}


VARIANTS = {
    "Load weight begin. avail mem=22.91 GB": {"free_before_load_bytes": gib(22.91)},
    "Load weight end. type=DeepseekV3ForCausalLM, dtype=torch.bfloat16, avail mem=21.73 GB, mem "
    "usage=166.59 GB.": {
        "weights_bytes": gib(166.59), "free_after_load_bytes": gib(21.73),
        "model_class": "DeepseekV3ForCausalLM", "weights_dtype": "torch.bfloat16",
    },
    "Load weight end. elapsed=3.94 s, type=Gemma4ForConditionalGeneration, quant=awq, bits=4, avail "
    "mem=11.84 GB, mem usage=11.07 GB.": {
        "weights_bytes": gib(11.07), "weights_format": "awq", "weights_load_s": 3.94,
    },
    "Load weight end. elapsed=9.1 s, type=Qwen3MoeForCausalLM, quant=fp8, fmt=e4m3, avail mem=11.84 "
    "GB, mem usage=29.11 GB.": {"weights_bytes": gib(29.11), "weights_format": "fp8"},
    "Using KV cache dtype: torch.float8_e4m3fn": {"kv_cache_dtype": "torch.float8_e4m3fn"},
    "KV Cache is allocated. #tokens: 46611, K size: 1.42 GB, V size: 1.42 GB": {
        "kv_tokens": 46611, "k_bytes": gib(1.42), "v_bytes": gib(1.42), "kv_bytes": 2 * gib(1.42),
    },
    "KV Cache is allocated. dtype: torch.bfloat16, #tokens: 330323, K size: 10.08 GB, V size: 10.08 "
    "GB": {"kv_tokens": 330323, "kv_cache_dtype": "torch.bfloat16", "k_bytes": gib(10.08)},
    "KV Cache is allocated. #tokens: 975424, KV size: 43.67 GB": {
        "kv_tokens": 975424, "kv_bytes": gib(43.67),
    },
    "KV Cache is allocated. dtype: torch.float8_e4m3fn, #tokens: 975424, KV size: 43.67 GB": {
        "kv_bytes": gib(43.67), "kv_cache_dtype": "torch.float8_e4m3fn",
    },
    "KV Cache is allocated. #tokens: 5120, Cache size: 3.25 GB": {"kv_bytes": gib(3.25)},
    "Virtual KV Cache is allocated. #tokens: 46611, K size: 1.42 GB, V size: 1.42 GB": {
        "virtual_kv_tokens": 46611, "virtual_kv_bytes": 2 * gib(1.42), "kv_tokens": None,
    },
    "VirtualKV Cache is allocated. (group_id=0). #tokens: 46611, K size: 1.42 GB, V size: 1.42 GB": {
        "virtual_kv_tokens": 46611, "kv_bytes": None,
    },
    "Use sliding window memory pool. full_layer_tokens=185897, swa_layer_tokens=148717": {
        "kv_tokens": 185897, "swa_kv_tokens": 148717,
    },
    "Use Sliding window memory pool. full_layer_tokens=185897, swa_layer_tokens=148717": {
        "kv_tokens": 185897, "swa_kv_tokens": 148717,
    },
    "Use sliding window memory pool (all SWA). swa_layer_tokens=148717": {"swa_kv_tokens": 148717},
    "SWAKVPool mem usage: 28.93 GB, swa size: 148717, full size: 185897": {
        "kv_bytes": gib(28.93), "swa_kv_tokens": 148717, "kv_tokens": 185897,
    },
    "Mamba Cache is allocated. max_mamba_cache_size: 124, conv_state size: 0.34GB, ssm_state size: "
    "17.58GB ": {
        "state_slots": 124, "conv_state_bytes": gib(0.34), "ssm_state_bytes": gib(17.58),
        "recurrent_state_bytes": gib(0.34) + gib(17.58),
    },
    "Mamba Cache is allocated. conv_state size: 0.34GB, ssm_state size: 17.58GB": {
        "conv_state_bytes": gib(0.34), "state_slots": None,
    },
    "Mamba Cache is allocated. max_mamba_cache_size: 48, conv_state size: 0.10GB, ssm_state size: "
    "2.58GB intermediate_ssm_state_cache size: 1.05GB intermediate_conv_window_cache size: 0.02GB ": {
        "intermediate_ssm_bytes": gib(1.05), "intermediate_conv_bytes": gib(0.02),
    },
    "DSV4 pool sizes: full=19968, swa=4864, c4=4992, c128=156, c4_state=608, c128_state=0": {
        "kv_tokens": 19968, "swa_kv_tokens": 4864, "c4_kv_tokens": 4992, "c128_kv_tokens": 156,
        "c4_state_slots": 608, "c128_state_slots": 0,
    },
    "Memory pool end. avail mem=2.09 GB": {"free_after_pool_bytes": gib(2.09)},
    "Capture cuda graph end. Time elapsed: 5.37 s. mem usage=1.44 GB. avail mem=38.05 GB.": {
        "cuda_graph_bytes": gib(1.44),
    },
    "Capture target decode CUDA graph end. elapsed=4.76 s, mem usage=0.10 GB, avail mem=8.90 GB.": {
        "cuda_graph_bytes": gib(0.10),
    },
    "Capture target prefill CUDA graph end. elapsed=4.76 s, mem usage=0.30 GB, avail mem=8.90 GB.": {
        "prefill_graph_bytes": gib(0.30),
    },
    "Capture target verify CUDA graph end. elapsed=4.76 s, mem usage=0.20 GB, avail mem=8.90 GB.": {
        "verify_graph_bytes": gib(0.20),
    },
    "Capture draft verify CUDA graph end. elapsed=4.76 s, mem usage=0.40 GB, avail mem=8.90 GB.": {
        "draft_verify_graph_bytes": gib(0.40),
    },
    "max_total_num_tokens=109120, chunked_prefill_size=4096, max_prefill_tokens=16384, "
    "max_running_requests=1, context_len=262144, available_gpu_mem=3.41 GB": {
        "kv_tokens": 109120, "chunked_prefill_tokens": 4096, "max_prefill_tokens": 16384,
        "max_running_requests": 1, "max_model_len": 262144, "free_gpu_bytes": gib(3.41),
    },
    "max_total_num_tokens=109120, chunked_prefill_size=-1, max_prefill_tokens=16384, "
    "max_running_requests=1, context_len=262144": {
        "chunked_prefill_tokens": -1, "free_gpu_bytes": None,
    },
    "max_running_requests is capped to 200 by the mamba state cache (max_mamba_cache_size=1000, 5 "
    "state slots per request).": {
        "max_running_requests": 200, "state_slots": 1000, "state_slots_per_request": 5,
    },
}  # fmt: skip


@pytest.mark.parametrize("line", VARIANTS)
def test_what_a_line_states(line: str) -> None:
    """What is printed as "GB" is GiB; tokens, slots and sizes under the names of what they are."""
    found = said("Load weight begin. avail mem=100.00 GB", line)
    wanted = VARIANTS[line]

    assert wanted == {name: found.get(name) for name in wanted}


def test_windows_come_first() -> None:
    """Of two pools the first is the window's; a third is the draft's."""
    pool = "KV Cache is allocated. #tokens: {}, K size: {:.2f} GB, V size: {:.2f} GB"
    found = said(
        "Use sliding window memory pool. full_layer_tokens=200, swa_layer_tokens=100",
        pool.format(100, 6, 6), pool.format(200, 1, 1), pool.format(200, 0.5, 0.5),
    )  # fmt: skip

    sizes = [found[f"{kind}kv_bytes"] for kind in ("swa_", "", "draft_")]
    assert [gib(12), gib(2), gib(1)] == sizes


def test_a_window_s_pool_of_which_no_line_speaks() -> None:
    """Of one load of weights, a second pool with more tokens is the full one; a draft's has as many."""
    one = "KV Cache is allocated. #tokens: 56320, K size: 5.40 GB, V size: 5.40 GB"
    loaded = (
        "Load weight end. type=A, dtype=torch.bfloat16, avail mem=62.40 GB, mem usage=49.17 GB."
    )
    two = "KV Cache is allocated. #tokens: {}, K size: 0.68 GB, V size: 0.68 GB"
    found = said(loaded, one, two.format(70656))

    assert (70656, gib(0.68) * 2, 56320, gib(5.4) * 2) == (
        found["kv_tokens"], found["kv_bytes"], found["swa_kv_tokens"], found["swa_kv_bytes"],
    )  # fmt: skip
    assert 56320 == said(loaded, one, two.format(56320))["draft_kv_tokens"]
    assert 70656 == said(loaded, one, loaded, two.format(70656))["draft_kv_tokens"]


def test_a_restart_is_a_new_start() -> None:
    """Weights load again after the pool was sized, with no settings printed between."""
    lines = ["Load weight begin. avail mem=100.00 GB", "max_total_num_tokens={}"]
    log = read_log(
        "".join(PREFIX + line.format(n) + "\n" for n in (1, 2) for line in lines).encode()
    )

    assert [1, 2] == [start.number("kv_tokens") for start in log.starts]


def test_settings_of_a_start() -> None:
    """ServerArgs as it is printed: what was asked for, not what is unset."""
    start = start_of(
        "server_args=ServerArgs(model_path='Qwen/Qwen3-32B', tokenizer_path='Qwen/Qwen3-32B', "
        "context_length=None, tp_size=4, mem_fraction_static=0.85, kv_cache_dtype='fp8_e5m2', "
        "disable_radix_cache=True, enable_dp_attention=False, quantization=None)",
        "max_total_num_tokens=5",
    )
    wanted = {
        "--tp-size": 4, "--mem-fraction-static": 0.85, "--kv-cache-dtype": "fp8_e5m2",
        "--disable-radix-cache": True,
    }  # fmt: skip

    assert wanted == start.flags
    assert "Qwen/Qwen3-32B" == start.last("model").value  # type: ignore[union-attr]
    assert 4 == start.number("tensor_parallel_size")
