"""vLLM's lines to facts."""

from __future__ import annotations

from kvplan.logs.readers.base import Reader, rows


class VllmReader(Reader):
    """The lines of vLLM."""

    engine = "vllm"
    signs = ("vLLM API server version", "GPU KV cache size")
    marks = ("KV cache size", "GiB")
    rows = rows(
        "Available KV cache memory: <available_kv_bytes:size>",
        "GPU KV cache size: <kv_tokens:whole> tokens",
    )
