"""Starts of engines other than vLLM that failed: the right cause, and a lever that ``fit`` confirms."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

import kvplan
from kvplan.core.units import GIB, MIB

RANK = "[2025-11-30 12:50:10 TP0] "
SGLANG = "[2025-11-30 12:50:09] server_args=ServerArgs(model_path='Qwen/Qwen3-32B', tp_size=1, {})"
LLAMA = "build: 9010 (d05fe1d7d) with cc for Linux x86_64"
LOADER = "llama_model_loader: loaded meta data with 33 key-value pairs from /m/qwen3-32b.gguf"
REFUSED = (
    "ggml_backend_cuda_buffer_type_alloc_buffer: allocating {} MiB on device 0: cudaMalloc failed: "
    "out of memory"
)


class Case(NamedTuple):
    """A log; what it names not; its cause with words of it; a lever that it is told."""

    lines: tuple[str, ...]
    code: str
    words: tuple[str, ...]
    lever: str
    model: str | None = None
    gpu: str = "h100-sxm-80gb"


def sglang(fraction: float, *lines: str, more: str = "") -> tuple[str, ...]:
    return (
        SGLANG.format(f"mem_fraction_static={fraction}{more}"),
        f"{RANK}Load weight begin. avail mem=78.50 GB",
        (
            f"{RANK}Load weight end. type=Qwen3ForCausalLM, dtype=torch.bfloat16, avail mem=15.30 GB, "
            "mem usage=63.20 GB."
        ),
        *(RANK + line for line in lines),
    )


def llama(
    *lines: str, file: str = "Q4_K - Medium", cells: int = 16384, flash: str = "enabled"
) -> tuple[str, ...]:
    return (
        LLAMA, LOADER,
        f"print_info: file type   = {file}",
        "load_tensors: offloaded 65/65 layers to GPU",
        "llama_context: n_seq_max     = 1",
        f"llama_context: n_ctx         = {cells}",
        f"llama_context: flash_attn    = {flash}",
        *lines,
    )  # fmt: skip


CACHE = (
    "llama_kv_cache: size = 4096.00 MiB ( 16384 cells,  64 layers,  1/1 seqs), K (f16): 2048.00 MiB,"
    " V (f16): 2048.00 MiB"
)
CASES = {
    "SGLang, to 0.5.12": Case(
        sglang(0.8, "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static."),
        "no_cache_memory",
        ("15.30 GiB are free after the weights", "-0.40 GiB", "below 0.806"),
        "--mem-fraction-static",
    ),
    "SGLang, from 0.5.15": Case(
        sglang(
            0.78,
            "ValueError: Loaded weights leave no GPU memory for the KV cache under "
            "--mem-fraction-static=0.78.",
        ),
        "no_cache_memory",
        ("keeps 17.27 GiB of 78.50 GiB", "-1.97 GiB"),
        "--mem-fraction-static",
    ),
    "SGLang, more tokens than there are": Case(
        sglang(
            0.78,
            "max_total_tokens=131072 is larger than the profiled value -561981. Use the profiled "
            "value instead.",
            more=", max_total_tokens=131072",
        ),
        "no_cache_memory",
        ("Nothing is left",),
        "--mem-fraction-static",
    ),
    "llama.cpp, the graph": Case(
        llama(
            CACHE,
            REFUSED.format("2200.01"),
            "ggml_gallocr_reserve_n: failed to allocate CUDA0 buffer of size 2306877440",
            "llama_init_from_model: failed to initialize the context: failed to allocate compute pp "
            "buffers",
            flash="disabled",
        ),
        "buffers_exceed_memory",
        ("2.15 GiB were refused", "cache (4 GiB) was made before", "Without flash attention"),
        "--flash-attn",
        "qwen3-32b",
        "rtx-4090",
    ),
    "llama.cpp, the cache": Case(
        llama(
            REFUSED.format("32768.00"),
            "llama_kv_cache_init: failed to allocate buffer for kv cache",
            cells=131072,
        ),
        "cache_exceeds_memory",
        ("on CUDA0 (32 GiB were refused)",),
        "--ctx-size",
        "qwen3-32b",
        "rtx-4090",
    ),
    "llama.cpp, the weights": Case(
        (
            *llama(file="Q8_0", cells=4096),
            REFUSED.format("32863.17"),
            "llama_model_load: error loading model: unable to allocate backend buffer",
        ),
        "weights_exceed_memory",
        ("on CUDA0 (32.09 GiB were refused)",),
        "--n-gpu-layers",
        "qwen3-32b",
        "rtx-4090",
    ),
    "llama.cpp, cut before it says what": Case(
        llama(CACHE, REFUSED.format("1401.xx"), flash="disabled"),
        "out_of_memory",
        ("after the cache was made",),
        "--flash-attn",
        "qwen3-32b",
        "rtx-4090",
    ),
}  # fmt: skip
STARTS = {
    "--mem-fraction-static": {"engine": "sglang"},
    "--flash-attn": {"engine": "llama.cpp", "ctx_size": 16384, "file": "Q4_K_M"},
    "--ctx-size": {"engine": "llama.cpp", "file": "Q4_K_M"},
    "--n-gpu-layers": {"engine": "llama.cpp", "ctx_size": 4096, "file": "Q8_0"},
}


def explained(case: Case) -> Any:
    log = ("\n".join(case.lines) + "\n").encode()
    return kvplan.explain(log, model=case.model, gpu=case.gpu)


@pytest.mark.parametrize("name", CASES)
def test_the_cause(name: str) -> None:
    """One error, in words with its arithmetic."""
    case = CASES[name]
    (error,) = (f for f in explained(case).findings if f.severity == "error")

    assert case.code == error.code
    assert not [word for word in case.words if word not in error.message]


@pytest.mark.parametrize("name", CASES)
def test_the_lever(name: str) -> None:
    """What is suggested starts: ``fit`` asked from the beginning says so too."""
    case = CASES[name]
    told = [s for s in explained(case).suggestions if s.flag == case.lever]
    assert told, "no such lever"
    words = [told[0].flag, *told[0].value.split()]
    flags = {words[n]: words[n + 1] for n in range(0, len(words) - 1, 2)}
    start = dict(STARTS[case.lever])
    if "file" in start:
        flags |= {"--quantization": start.pop("file"), "--parallel": "1"}
        flags.setdefault("--n-gpu-layers", "65")
        flags.setdefault("--ctx-size", str(start.pop("ctx_size", 4096)))
        start.pop("ctx_size", None)
    named = {flag.removeprefix("--").replace("-", "_"): value for flag, value in flags.items()}

    found = kvplan.fit(case.model or "Qwen/Qwen3-32B", gpu=case.gpu, context=1024, **start, **named)
    assert found.fits


def test_states_cap_requests() -> None:
    """A warning of SGLang: slots, not tokens; more slots are more requests."""
    log = "\n".join([
        ("[2025-11-30 12:50:09] server_args=ServerArgs(model_path='Qwen/Qwen3-Next-80B-A3B-Instruct', "
        "tp_size=4, mem_fraction_static=0.85)"),
        (f"{RANK}Mamba Cache is allocated. max_mamba_cache_size: 1000, conv_state size: 1.17GB, "
        "ssm_state size: 33.24GB "),
        (f"{RANK}max_running_requests is capped to 200 by the mamba state cache "
        "(max_mamba_cache_size=1000, 5 state slots per request)."),
    ])  # fmt: skip
    (finding,) = (
        f for f in kvplan.explain(log.encode()).findings if f.code == "requests_capped_by_states"
    )

    assert "1,000 slots of recurrent states / 5 a request" in finding.message
    running = [
        kvplan.fit(
            "Qwen/Qwen3-Next-80B-A3B-Instruct", gpu="h100-sxm-80gb", gpus=4, engine="sglang",
            max_mamba_cache_size=slots, context=1024,
        ).plan.capacity(1024).sequences
        for slots in (500, 1000)
    ]  # fmt: skip
    assert running[0] < running[1]


def test_a_window_is_cut_to_the_pool() -> None:
    """TensorRT-LLM: told where the last pool is smaller, not of the trial's."""
    cut = "[TensorRT-LLM][WARNING] Adjusted window size 131072 to {} in blocks_per_window"
    pool = "[TensorRT-LLM][INFO] [MemUsageChange] Allocated {} GiB for max tokens in paged KV cache ({})."
    trial = [cut.format(8224), pool.format(0.56, 8224)]

    def codes(*lines: str) -> set[str]:
        return {f.code for f in kvplan.explain("\n".join(lines).encode()).findings}

    assert "window_cut_to_pool" in codes(*trial, cut.format(46208), pool.format(3.17, 46208))
    assert "window_cut_to_pool" not in codes(*trial, pool.format(20.1, 300000))


def test_quantised_values_without_flash_attention() -> None:
    """The context is refused; the lever is flash attention."""
    for line in (
        "llama_new_context_with_model: V cache quantization requires flash_attn",
        "llama_init_from_model: quantized V cache requires flash_attn to be enabled",
    ):
        answer = kvplan.explain(f"{LOADER}\n{line}\n".encode())

        assert ["quantised_values_need_flash_attention"] == [f.code for f in answer.findings]
        assert "--flash-attn on" in answer.findings[0].message


def test_numbers_of_a_refusal() -> None:
    """The device and the bytes, as the lines before the error say them."""
    (failure,) = explained(CASES["llama.cpp, the graph"]).start.failures

    assert {"device": "CUDA0", "requested_bytes": 2306877440} == dict(failure.numbers)
    (weights,) = explained(CASES["llama.cpp, the weights"]).start.failures
    assert round(32863.17 * MIB) == weights.numbers["requested_bytes"]
    assert weights.numbers["requested_bytes"] > 32 * GIB
