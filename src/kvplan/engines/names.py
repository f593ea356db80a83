"""Names: the engines that are modelled, and flags. Nothing heavy is imported here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

DEFAULT_ENGINE = "vllm"
# Those that serve llama.cpp's files, whose layers are dealt to cards and host.
LAYERED = ("llama.cpp", "ik_llama.cpp", "ollama")

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


def flags_of(keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Keyword arguments as an engine spells them: ``max_model_len`` is ``--max-model-len``."""
    return {f"--{name.replace('_', '-')}": value for name, value in keywords.items()}


def keywords_of(flags: Mapping[str, Any]) -> dict[str, Any]:
    """The keyword arguments of flags: ``--max-model-len`` is ``max_model_len``."""
    return {flag.lstrip("-").replace("-", "_"): value for flag, value in flags.items()}
