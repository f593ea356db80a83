"""What published rows call models, engines, formats and cards, as kvplan calls them."""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from kvplan.core.errors import KvplanError
from kvplan.readers.devices import find_device

SOURCE_OF_LOOPS: Final = "aic-silicon"
PAGES: Final = "trtllm-perf-overview"
VALIDATION: Final = "aic-gap-analysis"  # aiconfigurator's own runs: fixed lengths
# The model of a row's name: the catalogue's id, and the architecture that the split goes by, so
# that a model's quantised copy or its later training never stands on both sides.
MODELS: Final[dict[str, tuple[str, str]]] = {
    "deepseek-ai/DeepSeek-R1": ("deepseek-ai/DeepSeek-R1", "DeepSeek V3"),
    "deepseek-ai/DeepSeek-V3": ("deepseek-ai/DeepSeek-V3", "DeepSeek V3"),
    "deepseek-ai/DeepSeek-R1-0528": ("deepseek-ai/DeepSeek-R1", "DeepSeek V3"),
    "DeepSeek R1 0528": ("deepseek-ai/DeepSeek-R1", "DeepSeek V3"),
    "nvidia/DeepSeek-R1-NVFP4": ("deepseek-ai/DeepSeek-R1", "DeepSeek V3"),
    "nvidia/DeepSeek-V3.1-NVFP4": ("deepseek-ai/DeepSeek-V3", "DeepSeek V3"),
    "deepseek-ai/DeepSeek-V3.2": ("deepseek-ai/DeepSeek-V3.2", "DeepSeek V3.2"),
    "meta-llama/Llama-3.1-70B": ("meta-llama/Llama-3.1-70B", "Llama 3 70B"),
    "Llama 3.3 70B": ("meta-llama/Llama-3.3-70B-Instruct", "Llama 3 70B"),
    "meta-llama/Meta-Llama-3-70B-Instruct": ("meta-llama/Llama-3.1-70B", "Llama 3 70B"),
    "Llama-3-70B": ("meta-llama/Llama-3.1-70B", "Llama 3 70B"),
    "meta-llama/Llama-3.1-8B-Instruct": ("meta-llama/Llama-3.1-8B-Instruct", "Llama 3 8B"),
    "meta-llama/Meta-Llama-3-8B-Instruct": ("meta-llama/Meta-Llama-3-8B", "Llama 3 8B"),
    "nvidia/Llama-3.1-8B-Instruct-FP8": ("meta-llama/Llama-3.1-8B-Instruct", "Llama 3 8B"),
    "Llama-3-8B": ("meta-llama/Meta-Llama-3-8B", "Llama 3 8B"),
    "Llama-3.1-8B-Instruct": ("meta-llama/Llama-3.1-8B-Instruct", "Llama 3 8B"),
    "Llama 3.1 8B": ("meta-llama/Llama-3.1-8B", "Llama 3 8B"),
    "Llama-3.1-405B-Instruct-FP8": ("meta-llama/Meta-Llama-3.1-405B", "Llama 3 405B"),
    "Llama-3.1-405B-Instruct": ("meta-llama/Meta-Llama-3.1-405B", "Llama 3 405B"),
    "Llama 3.1 405B": ("meta-llama/Meta-Llama-3.1-405B", "Llama 3 405B"),
    "Llama 4 Scout": ("meta-llama/Llama-4-Scout-17B-16E", "Llama 4 Scout"),
    "Llama 4 Maverick": ("meta-llama/Llama-4-Maverick-17B-128E-Instruct", "Llama 4 Maverick"),
    "Qwen/Qwen3-32B": ("Qwen/Qwen3-32B", "Qwen3 32B"),
    "Qwen3-32B": ("Qwen/Qwen3-32B", "Qwen3 32B"),
    "nvidia/Qwen3-32B-NVFP4": ("Qwen/Qwen3-32B", "Qwen3 32B"),
    "QwQ-32B": ("Qwen/QwQ-32B", "Qwen2.5 32B"),
    "Qwen3-14B": ("Qwen/Qwen3-14B", "Qwen3 14B"),
    "Qwen/Qwen3-8B": ("Qwen/Qwen3-8B", "Qwen3 8B"),
    "Qwen3-8B (page says Qwen3-30B-A3B in its Model field)": ("Qwen/Qwen3-8B", "Qwen3 8B"),
    "Qwen/Qwen2.5-0.5B-Instruct": ("Qwen/Qwen2.5-0.5B", "Qwen2.5 0.5B"),
    "Qwen3-30B-A3B": ("Qwen/Qwen3-30B-A3B", "Qwen3 30B-A3B"),
    "Qwen/Qwen3-30B-A3B": ("Qwen/Qwen3-30B-A3B", "Qwen3 30B-A3B"),
    "Qwen/Qwen3-235B-A22B-FP8": ("Qwen/Qwen3-235B-A22B", "Qwen3 235B-A22B"),
    "Qwen3-235B-A22B": ("Qwen/Qwen3-235B-A22B", "Qwen3 235B-A22B"),
    "Qwen3-235B-A22B-Instruct-2507": ("Qwen/Qwen3-235B-A22B", "Qwen3 235B-A22B"),
    "Qwen/Qwen3.5-397B-A17B": ("Qwen/Qwen3.5-397B-A17B", "Qwen3.5 397B-A17B"),
    "openai/gpt-oss-120b": ("openai/gpt-oss-120b", "gpt-oss 120B"),
    "GPT-OSS 120B": ("openai/gpt-oss-120b", "gpt-oss 120B"),
    "GPT-OSS-20B": ("openai/gpt-oss-20b", "gpt-oss 20B"),
    "GPT-OSS 20B": ("openai/gpt-oss-20b", "gpt-oss 20B"),
    "moonshotai/Kimi-K2.5": ("moonshotai/Kimi-K2.5", "Kimi K2"),
    "zai-org/GLM-4.5-Air": ("zai-org/GLM-4.5-Air", "GLM 4.5 Air"),
    "zai-org/GLM-4.6": ("zai-org/GLM-4.6", "GLM 4.6"),
    "mistralai/Mixtral-8x7B-Instruct-v0.1": ("mistralai/Mixtral-8x7B-v0.1", "Mixtral 8x7B"),
    "GPT-J 6B": ("EleutherAI/gpt-j-6b", "GPT-J 6B"),
    "LLaMA 70B": ("meta-llama/Llama-2-70b-hf", "Llama 2 70B"),
    "LLaMA 7B": ("meta-llama/Llama-2-7b-hf", "Llama 2 7B"),
    "Nemotron Nano 30B (A3B hybrid)": ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "Nemotron 3"),
    "Nemotron Super 49B": ("nvidia/Llama-3_3-Nemotron-Super-49B-v1", "Nemotron Super 49B"),
}
# Models whose own releases in FP8 have a scale each 128 × 128 weights, activations scaled as they
# come; a page of TensorRT-LLM's quantises with a scale a tensor by itself.
IN_BLOCKS: Final = frozenset({"Qwen3 32B", "Qwen3 235B-A22B", "Qwen3 8B", "Qwen3.5 397B-A17B"})
OWN_FP8: Final = frozenset({SOURCE_OF_LOOPS, "gpustack-lab"})
# Checkpoints that somebody else quantised to NVFP4.
IN_NVFP4: Final = {
    "DeepSeek V3": "nvidia/DeepSeek-V3.1-NVFP4",
    "Kimi K2": "nvidia/Kimi-K2.5-NVFP4",
    "Qwen3.5 397B-A17B": "nvidia/Qwen3.5-397B-A17B-NVFP4",
    "Qwen3 235B-A22B": "nvidia/Qwen3-235B-A22B-NVFP4",
}
ENGINES: Final = {
    "vLLM": "vllm",
    "SGLang": "sglang",
    "TensorRT-LLM": "tensorrt-llm",
    "llama.cpp": "llama.cpp",
    "1Cat-vLLM": "vllm",
    "vLLM-Ascend": "vllm",
    "vllm-ascend": "vllm",
}
# What the weights are stored in, as kvplan's own word for it; "" is the checkpoint's own.
FORMATS: Final = {
    "": "", "auto": "", "bf16": "", "BF16": "", "FP16": "", "fp16": "", "F16": "", "mxfp4": "",
    "fp8": "fp8", "fp8(native)": "fp8", "fp4": "nvfp4", "nvfp4": "nvfp4", "int4": "w4a16",
    "awq": "awq", "Q4_K_M": "q4_k_m",
}  # fmt: skip
MIXTURES: Final = frozenset({
    "DeepSeek V3", "DeepSeek V3.2", "Llama 4 Scout", "Llama 4 Maverick", "Qwen3 30B-A3B",
    "Qwen3 235B-A22B", "Qwen3.5 397B-A17B", "gpt-oss 120B", "gpt-oss 20B", "Kimi K2", "GLM 4.5 Air",
    "GLM 4.6", "Mixtral 8x7B", "Nemotron 3",
})  # fmt: skip


@cache
def device_of(said: str) -> str | None:
    """A device by what a row calls it; its maker, its memory and its box are left away."""
    tries = [said]
    tries.append(
        re.sub(r"^(NVIDIA|AMD Instinct|AMD|Huawei|Google|Virtualized NVIDIA)\s+", "", said)
    )
    tries.append(re.sub(r"\s*\d+\s*GB.*$", "", tries[-1]))
    tries.append(re.sub(r"[- ]SXM.*$", "", tries[-1]))
    tries.append(f"rtx {tries[-1]}")
    for name in tries:
        try:
            found, _ = find_device(name)
        except KvplanError:
            continue
        return found.name
    return None
