"""The engines that are modelled: their names, and where each is. Nothing heavy is imported here."""

from __future__ import annotations

DEFAULT_ENGINE = "vllm"

# Module and class below this package.
ENGINES: dict[str, str] = {
    "none": "plain:PlainEngine",
    "llama.cpp": "llamacpp.engine:LlamaCpp",
    "ik_llama.cpp": "llamacpp.engine:IkLlamaCpp",
    "ollama": "ollama.engine:Ollama",
    "vllm": "vllm.engine:VllmEngine",
    "sglang": "sglang.engine:SGLangEngine",
    "tensorrt-llm": "tensorrt_llm.engine:TensorRTEngine",
    "transformers": "transformers.engine:TransformersEngine",
}
