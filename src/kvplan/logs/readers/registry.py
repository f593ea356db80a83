"""The readers of engines' logs; one is imported when a log is read."""

from __future__ import annotations

from importlib import import_module

from kvplan.logs.readers.base import Reader

# Module and class below this package.
READERS: dict[str, str] = {
    "vllm": "vllm.reader:VllmReader",
    "sglang": "sglang:SglangReader",
    "llama.cpp": "llamacpp.reader:LlamaReader",
    "ik_llama.cpp": "llamacpp.reader:IkReader",
    "ollama": "ollama:OllamaReader",
    "tensorrt-llm": "tensorrt_llm:TensorRtReader",
    "vllm /metrics": "exported:VllmMetrics",
    "sglang /metrics": "exported:SglangMetrics",
    "llama.cpp /metrics": "exported:LlamaMetrics",
    "tgi /metrics": "exported:TgiMetrics",
}


def new_readers() -> list[Reader]:
    """A reader of every engine, for one log."""
    made = []
    for entry in READERS.values():
        module, cls = entry.split(":")
        made.append(getattr(import_module(f"kvplan.logs.readers.{module}"), cls)())
    return made
