"""TensorRT-LLM's lines, 0.5 to 1.x; every size is binary, "MB" and "GB" too.

The PyTorch backend prints a small pool for its trial run and then the real one, in the same words:
what is said last counts. ``available`` is what is free, of which the pool takes its fraction
(cpp/tensorrt_llm/batch_manager/kvCacheManager.cpp, runtime/memoryCounters.cpp).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kvplan.logs.facts import Begin, Found, Value
from kvplan.logs.lines import Line
from kvplan.logs.readers.base import Reader, found, row, rows

# The library's own, or that of an engine's file, which it has to be (gptJsonConfig.cpp).
_VERSION = re.compile(r"(?:TensorRT-LLM version: {1,9}|Engine version )(\S{1,60})")
_POOL = row(r"Allocated <kv_bytes:size> for max tokens in paged KV cache \(<kv_tokens:whole>\)")


class TensorRtReader(Reader):
    """The lines of TensorRT-LLM."""

    engine = "tensorrt-llm"
    # Not its tag, which every line of a running server has.
    signs = (
        "paged KV cache", "TensorRT-LLM version", "paged kv cache", "for k/v cache",
        "KV cache primary pool", "KV cache secondary pool", "KV cache blocks per sequence",
        "KV cache pages per sequence", "[MemUsageChange]", "Loaded engine size",
        "tokens per block",
    )  # fmt: skip
    marks = (
        "TensorRT-LLM version", "Engine version ", "paged KV cache", "paged kv cache", "k/v cache",
        "KV cache p",
        "KV cache s", "KV cache blocks", "tokens per block", "engine size", "MemUsageChange",
        "Adjusted window size", "blocks_per_window", "Estimated max tokens", "out of memory",
    )  # fmt: skip
    rows = (
        *rows(
            "Using <kv_tokens:whole> tokens in paged KV cache",
            r"Allocate <kv_bytes:bytes> bytes for k/v cache",
            "total: <total_gpu_bytes:size>, available: <free_gpu_bytes:size>",
            "blocks in KV cache primary pool: <num_gpu_blocks:whole>",
            "blocks in KV cache secondary pool: <num_host_blocks:whole>",
            "Max KV cache pages per sequence: <blocks_per_sequence:whole>",
            "Max KV cache blocks per sequence: <blocks_per_sequence:whole>"
            r" \[window size=<window_tokens:whole>\](?:, tokens per block=<block_size:whole>)?"
            "(?:, primary blocks=<num_gpu_blocks:whole>)?"
            "(?:, secondary blocks=<num_host_blocks:whole>)?"
            "(?:, max sequence length=<max_model_len:whole>)?",
            "Number of tokens per block: <block_size:whole>",
            "Estimated max tokens in KV cache ?: <estimated_kv_tokens:whole>",
            "Adjusted window size <asked_window_tokens:whole> to <cut_window_tokens:whole>"
            " in blocks_per_window",
            "Loaded engine size: <weights_bytes:size>",
            "Allocated <execution_context_bytes:size> for execution context memory",
            "Allocated <runtime_buffer_bytes:size> GPU memory for runtime buffers",
            "Allocated <decoder_bytes:size> GPU memory for decoder",
        ),
        row("CUDA out of memory. Tried to allocate <requested_bytes:size>", "out_of_memory"),
        row("Cuda failure[^:]{0,60}: out of memory", "out_of_memory"),
    )

    def __init__(self) -> None:
        self._begun = self._pooled = False

    def read(self, line: Line) -> Iterator[Found]:
        """What a line says; the first version line after a pool begins a new start."""
        version = _VERSION.search(line.text)
        if version is not None:
            if self._pooled or not self._begun:
                self._begun, self._pooled = True, False
                yield Begin(version[1])
        elif (figures := _POOL.match(line.text)) is not None:
            self._pooled = True
            yield from found(line, _with_memory(figures))
        else:
            yield from super().read(line)


def _with_memory(figures: dict[str, Value]) -> dict[str, Value]:
    """A pool's figures; AutoDeploy's manager prints 0.00 GiB, as its memory is PyTorch's."""
    if figures.get("kv_bytes"):
        return figures
    return {name: value for name, value in figures.items() if name != "kv_bytes"}
