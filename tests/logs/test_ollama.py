"""Ollama's lines: its estimate, its own engine, llama-server below it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kvplan.core.units import GIB, MIB, parse_bytes
from kvplan.logs.facts import Start
from kvplan.logs.read import read_log
from tests.logs.around import AROUND

REPORTS = Path(__file__).parents[1] / "reference" / "reports" / "llamacpp.jsonl"
ROWS = [
    row
    for row in map(json.loads, REPORTS.read_text(encoding="utf-8").splitlines())
    if row["ollama"]
]
ESTIMATED = [row for row in ROWS if "required_full" in row["ollama"]]
STAMP = "time=2025-06-01T10:00:00.000+02:00 level=INFO "
KEYS = {
    "required_full": ("memory.required.full", "estimated_total_bytes"),
    "required_partial": ("memory.required.partial", "estimated_gpu_bytes"),
    "required_kv": ("memory.required.kv", "estimated_kv_bytes"),
    "weights_total": ("memory.weights.total", "estimated_weights_bytes"),
    "weights_repeating": ("memory.weights.repeating", "estimated_repeating_weights_bytes"),
    "weights_nonrepeating": ("memory.weights.nonrepeating", "estimated_nonrepeating_weights_bytes"),
    "graph_full": ("memory.graph.full", "estimated_graph_bytes"),
    "graph_partial": ("memory.graph.partial", "estimated_partial_graph_bytes"),
    "projector_weights": ("projector.weights", "estimated_projector_bytes"),
    "projector_graph": ("projector.graph", "estimated_projector_graph_bytes"),
}


def size(text: str) -> int:
    return parse_bytes(text.split(" x", maxsplit=1)[0])


def estimate(said: dict[str, Any], old: bool) -> str:
    """The line of January 2025 or of June."""
    library = said.get("library", "cuda")
    head = f'{STAMP}source=memory.go:356 msg="offload to {library}"' if old else (
        f"{STAMP}source=server.go:175 msg=offload library={library}"
    )  # fmt: skip
    amount, _, cards = said["memory_available"].partition(" x")
    available = " ".join([amount] * int(cards or 1))
    split = said.get("layers_split", '""')
    text = (
        f"{head} layers.requested=-1 layers.model={said['layers_model']} "
        f"layers.offload={said['layers_offload']} layers.split={split} "
        f'memory.available="[{available}]" memory.gpu_overhead="0 B"'
    )
    for key, (name, _) in KEYS.items():
        if key in said:
            text += f' {name}="{said[key]}"'
    return text + f' memory.required.allocations="[{said["required_partial"]}]"'


def start_of(*lines: str) -> Start:
    start = read_log(("\n".join(lines) + "\n").encode()).start
    assert start is not None
    assert "ollama" == start.engine
    return start


@pytest.mark.parametrize("around", ["plain", "journald", "docker compose", "quoted", "Windows"])
@pytest.mark.parametrize("old", [True, False], ids=["offload to", "library="])
@pytest.mark.parametrize("row", ESTIMATED, ids=[row["id"] for row in ESTIMATED])
def test_estimates(row: dict[str, Any], old: bool, around: str) -> None:
    """Each figure, named as the estimate that it is; what is free by card."""
    said = row["ollama"]
    start = start_of(AROUND[around](estimate(said, old) + "\n"))
    wanted = {name: size(said[key]) for key, (_, name) in KEYS.items() if key in said}
    wanted |= {"gpu_layers": said["layers_offload"], "offloadable_layers": said["layers_model"]}

    assert wanted == {name: start.number(name) for name in wanted}
    cards = int(said["memory_available"].partition(" x")[2] or 1)
    assert cards * size(said["memory_available"]) == start.total("free_gpu_bytes")


def test_an_estimate_is_no_allocation() -> None:
    """llama.cpp's line says what is allocated; the command gives slots and context of each."""
    said = ESTIMATED[0]["ollama"]
    start = start_of(
        f'{STAMP}source=routes.go:1238 msg="Listening on [::]:11434 (version 0.5.7)"',
        estimate(said, True),
        f'{STAMP}source=server.go:376 msg="starting llama server" cmd="/usr/lib/ollama/runners/'
        "cuda_v12_avx/ollama_llama_server runner --model /blobs/sha256-1 --ctx-size 8192 "
        '--batch-size 512 --n-gpu-layers 5 --threads 32 --parallel 4 --port 33061"',
        "llama_model_loader: loaded meta data with 42 key-value pairs from /blobs/sha256-1",
        "llama_new_context_with_model: n_ctx         = 8192",
        "llama_new_context_with_model: KV self size  = 39040.00 MiB, K (f16): 23424.00 MiB, V (f16): "
        "15616.00 MiB",
    )

    assert (size(said["required_kv"]), 39040 * MIB) == (
        start.number("estimated_kv_bytes"), start.number("kv_bytes")
    )  # fmt: skip
    assert "0.5.7" == start.version
    wanted = {"--num_ctx": 2048, "--OLLAMA_NUM_PARALLEL": 4, "--num_batch": 512}
    assert wanted == {name: start.flags.get(name) for name in wanted}
    assert not [flag for flag in start.flags if flag in ("--ctx-size", "--parallel")]


def engine_lines(operation: str, kv: str) -> list[str]:
    request = (
        f"{{Operation:{operation} LoraPath:[] Parallel:1 BatchSize:512 FlashAttention:Enabled "
        "KvSize:32768 KvCacheType:q8_0 NumThreads:8 GPULayers:31[ID:GPU-0 Layers:31(0..30)] "
        "MultiUserCache:false}"
    )
    return [
        f'{STAMP}source=runner.go:1189 msg=load request="{request}"',
        f'{STAMP}source=device.go:240 msg="model weights" device=CUDA0 size="16.6 GiB"',
        f'{STAMP}source=device.go:245 msg="model weights" device=CPU size="667.5 MiB"',
        f'{STAMP}source=device.go:251 msg="kv cache" device=CUDA0 size="{kv}"',
        f'{STAMP}source=device.go:262 msg="compute graph" device=CUDA0 size="243.9 MiB"',
        f'{STAMP}source=device.go:272 msg="total memory" size="19.2 GiB"',
    ]


def test_its_engine_says_what_stays() -> None:
    """Fit and alloc try layouts; commit is what is allocated."""
    lines = [*engine_lines("fit", "3.0 GiB"), *engine_lines("alloc", "2.0 GiB")]
    start = start_of(*lines, *engine_lines("commit", "1.5 GiB"))

    assert round(1.5 * GIB) == start.total("kv_buffer_bytes")
    assert round(16.6 * GIB) + round(667.5 * MIB) == start.total("model_buffer_bytes")
    assert round(19.2 * GIB) == start.number("reported_total_bytes")
    wanted = {"--num_ctx": 32768, "--OLLAMA_NUM_PARALLEL": 1, "--OLLAMA_KV_CACHE_TYPE": "q8_0"}
    assert wanted == {name: start.flags.get(name) for name in wanted}


def test_its_engine_of_mid_2025() -> None:
    """buffer= and backend= in place of device=."""
    start = start_of(
        f'{STAMP}source=ggml.go:365 msg="model weights" buffer=CUDA0 size="7.3 GiB"',
        f'{STAMP}source=ggml.go:672 msg="compute graph" backend=CUDA0 buffer_type=CUDA0 '
        'size="1.1 GiB"',
    )

    assert round(7.3 * GIB) == start.total("model_buffer_bytes")
    assert round(1.1 * GIB) == start.total("compute_buffer_bytes")


def test_every_load_is_a_start() -> None:
    """Two models one after the other, in one log."""
    first, second = engine_lines("commit", "1.5 GiB"), engine_lines("commit", "2.5 GiB")
    log = read_log("\n".join([*first, *second]).encode())

    assert [round(1.5 * GIB), round(2.5 * GIB)] == [
        start.total("kv_buffer_bytes") for start in log.starts
    ]


def test_repeated_buffers_are_counted() -> None:
    """From 0.30 llama-server runs: a window's buffer beside the other on the same device."""
    start = start_of(
        f'{STAMP}source=llama_server.go:433 msg="starting llama-server" cmd="/usr/lib/ollama/llama-'
        'server --model /blobs/sha256-1 --ctx-size 32768 --parallel 1 --cache-type-k q8_0"',
        "0.00.061.143 I llama_model_loader: loaded meta data from /blobs/sha256-1",
        "0.00.775.463 I llama_kv_cache_iswa: creating non-SWA KV cache, size = 32768 cells",
        "0.00.775.463 I llama_kv_cache:      CUDA0 KV buffer size =   512.00 MiB",
        "0.00.775.463 I llama_kv_cache: size =  512.00 MiB ( 32768 cells,   4 layers,  1/1 seqs), "
        "K (f16):  256.00 MiB, V (f16):  256.00 MiB",
        "0.00.775.463 I llama_kv_cache_iswa: creating     SWA KV cache, size = 1536 cells",
        "0.00.775.463 I llama_kv_cache:      CUDA0 KV buffer size =    60.00 MiB",
        "0.00.775.463 I llama_kv_cache: size =   60.00 MiB (  1536 cells,  20 layers,  1/1 seqs), "
        "K (f16):   30.00 MiB, V (f16):   30.00 MiB",
    )

    sizes = (start.number("kv_buffer_bytes"), start.number("swa_kv_buffer_bytes"))
    assert (512 * MIB, 60 * MIB) == sizes
    assert 32768 == start.flags["--num_ctx"]
    assert "q8_0" == start.flags["--OLLAMA_KV_CACHE_TYPE"]


def test_too_large_for_the_machine() -> None:
    """The refusal before anything starts, with its figures."""
    start = start_of(
        f'{STAMP}source=sched.go:428 msg="load failed" error="model requires more system memory '
        '(5.6 GiB) than is available (4.4 GiB)"',
    )

    (failure,) = start.failures
    assert ("weights_exceed_memory", round(5.6 * GIB)) == (
        failure.code, failure.numbers["needed_bytes"]
    )  # fmt: skip
