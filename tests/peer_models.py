"""The models of the peers' table, by its own names, and the length it is of."""

from __future__ import annotations

TOKENS = 32_768
MODELS = {
    "Llama-3.1-8B": "meta-llama/Llama-3.1-8B",
    "Qwen3-0.6B": "Qwen/Qwen3-0.6B",
    "Qwen3-32B": "Qwen/Qwen3-32B",
    "DeepSeek-V3": "deepseek-ai/DeepSeek-V3",
    "Gemma-3-27B": "google/gemma-3-27b-it",
    "Gemma-3-27B-text": "google/gemma-3-27b-it",
    "gpt-oss-120b": "openai/gpt-oss-120b",
    "Qwen3-Next-80B-A3B": "Qwen/Qwen3-Next-80B-A3B-Instruct",
    "Jamba-1.5-Mini": "ai21labs/AI21-Jamba-1.5-Mini",
    "Llama-4-Scout": "meta-llama/Llama-4-Scout-17B-16E-Instruct",
    "Mamba2-2.7B": "state-spaces/mamba2-2.7b",
    "DeepSeek-V3.2": "deepseek-ai/DeepSeek-V3.2",
    "Gemma-3n-E4B": "google/gemma-3n-E4B-it",
    "Nemotron-3-Nano": "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
    "Qwen3.5-27B": "Qwen/Qwen3.5-27B",
    "Gemma-4-26B-A4B": "google/gemma-4-26B-A4B",
    "Whisper-large-v3": "openai/whisper-large-v3",
    "Kimi-K3": "moonshotai/Kimi-K3",
    "MiniMax-M3": "MiniMaxAI/MiniMax-M3",
}
