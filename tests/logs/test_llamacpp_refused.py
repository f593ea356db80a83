"""Allocations that llama.cpp was refused: what they were for, and what makes them smaller.

Lines of issues, shortened: llama.cpp 20431, 12728 (Vulkan), ollama 8597, 12634 and others named by
their wording alone.
"""

from __future__ import annotations

import pytest

from kvplan.logs.failures import failures_of
from kvplan.logs.read import read_log

BUILD = "build: 6840 (abc1234) with cc for x86_64-linux-gnu"
CUDA = (
    "ggml_backend_cuda_buffer_type_alloc_buffer: allocating {} MiB on device 0: cudaMalloc failed: "
    "out of memory"
)
GRAPH = "ggml_gallocr_reserve_n: failed to allocate {} buffer of size {}"
LISTENING = "srv  update_slots: all slots are idle"

REFUSED: list[tuple[tuple[str, ...], str, str]] = [
    (
        (CUDA.format("144817.04"), ("alloc_tensor_range: failed to allocate CUDA0 buffer of size "
         "151851674624"), "llama_model_load: error loading model: unable to allocate CUDA0 buffer"),
        "weights_exceed_memory",
        "The weights do not fit on CUDA0 (141.4 GiB were refused): fewer layers on the card",
    ),
    (
        ("alloc_tensor_range: failed to allocate CPU buffer of size 437944320",
         "llama_model_load: error loading model: unable to allocate CPU buffer"),
        "weights_exceed_memory",
        "The weights do not fit in host memory (417.7 MiB were refused): more layers on a card",
    ),
    (
        ("Failed to initialize the context: failed to allocate buffer for rs cache",),
        "states_exceed_memory",
        "Every slot has one, and no shorter context makes it smaller: --parallel 1 does",
    ),
    (
        ("llama_init_from_model: flash_attn is not compatible with Grok - forcing off",
         "llama_init_from_model: V cache quantization requires flash_attn"),
        "quantised_values_need_flash_attention",
        "which this build does not have for this model: keep --cache-type-v f16",
    ),
    (
        ("srv  process_chun: processing image...", CUDA.format("4514.05")),
        "out_of_memory",
        "failed while an image was read",
    ),
    (
        ("srv  process_chun: processing image...", "image processed in 90 ms", LISTENING,
         CUDA.format("4514.05")),
        "out_of_memory",
        "failed while a request ran, after the start",
    ),
    (
        (("ggml_vulkan: Requested buffer size exceeds device memory allocation limit: "
         "ErrorOutOfDeviceMemory"), GRAPH.format("Vulkan0", 2166360064),
         ("llama_init_from_model: failed to initialize the context: failed to allocate compute pp "
         "buffers")),
        "buffers_exceed_memory",
        "more than the driver gives in one allocation",
    ),
    (
        (("ggml_backend_metal_buffer_type_alloc_buffer: error: failed to allocate buffer, size = "
         "70400.38 MiB"),),
        "out_of_memory",
        "no line says what it was for",
    ),
    (
        ("level_zero backend failed with error: 39 (UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)",),
        "out_of_memory",
        "no line says what it was for",
    ),
    (
        ("llama_new_context_with_model: pipeline parallelism enabled (n_copies=4)",
         "llama_new_context_with_model: flash_attn = 1", CUDA.format("279356.51"),
         GRAPH.format("CUDA0", 292926534144),
         "llama_new_context_with_model: failed to allocate compute buffers"),
        "buffers_exceed_memory",
        ("keeps 4 copies of what each part of the graph takes in: a build with "
        "-DGGML_SCHED_MAX_COPIES=1 keeps one. A smaller --ubatch-size or a shorter context"),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("lines", "code", "said"), REFUSED)
def test_what_was_refused(lines: tuple[str, ...], code: str, said: str) -> None:
    start = read_log("\n".join((BUILD, *lines)) + "\n").start
    assert start is not None
    ((found, message),) = [(one.code, one.message) for one in failures_of(start)]

    assert code == found
    assert said in message


def test_a_second_try_without_copies_is_no_failure() -> None:
    """The graph's buffer is asked for again, smaller, and the server starts."""
    lines = (
        BUILD,
        CUDA.format("51748.72"),
        GRAPH.format("CUDA1", 54262464512),
        "graph_reserve: failed to allocate compute buffers",
        "sched_reserve: compute buffer allocation failed, retrying without pipeline parallelism",
        "srv  load_model: initializing, n_slots = 2, n_ctx_slot = 50176",
    )
    start = read_log("\n".join(lines) + "\n").start
    assert start is not None

    assert [] == list(failures_of(start))
