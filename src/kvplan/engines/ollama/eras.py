"""Ollama's releases: how each one sizes a model, and its defaults.

    ESTIMATE   to 0.11.10   llm/memory.go: an estimate decides the layers, llama.cpp allocates
    MEASURE    to 0.29      llm/server.go: its own engine allocates and measures until it fits
    SERVER     from 0.30    llm/llama_server.go: llama-server, with its automatic fit

envconfig/config.go, api/types.go, server/sched.go and server/routes.go (0.5.0 to 0.32.15).
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from kvplan.core.units import GIB, MIB
from kvplan.core.version import ByVersion, Version

VERSIONS: Final = ("0.5", "0.32.15")


class Era(Enum):
    """How a release sizes a model."""

    ESTIMATE = "estimate"
    MEASURE = "measure"
    SERVER = "server"


ERAS: Final = ByVersion((("0", Era.ESTIMATE), ("0.11.11", Era.MEASURE), ("0.30", Era.SERVER)))
# 0: by the cards' memory (0.15.5).
CONTEXTS: Final = ByVersion((("0", 2048), ("0.7", 4096), ("0.15.5", 0)))
# The most that is tried automatically; 1 where it is plain 1 (0.10).
PARALLEL: Final = ByVersion((("0", 4), ("0.7", 2), ("0.10", 1)))
# The llama.cpp that a release builds or starts (LLAMA_CPP_VERSION; before it the copy it carries).
BUILDS: Final = ByVersion(
    (
        ("0", "b4200"),
        ("0.6", "b4850"),
        ("0.7", "b5359"),
        ("0.11.11", "b6459"),
        ("0.30", "b9452"),
        ("0.31", "b9840"),
        ("0.32", "b9888"),
        ("0.32.15", "b10488"),
    )
)
# Architectures with flash attention by default (fs/ggml/ggml.go, FlashAttention; 0.13 and 0.20).
FLASH_ATTENTION: Final = frozenset({
    "gemma3", "gemma3_text", "gptoss", "gpt-oss", "gpt_oss", "qwen3", "qwen3moe", "qwen3_moe",
    "qwen3vl", "qwen3vlmoe", "qwen3_vl", "qwen3_vl_moe", "mistral3", "olmo3", "lfm2", "lfm2moe",
    "lfm2_moe", "nemotron_h", "nemotron_h_moe", "qwen35", "qwen35moe", "qwen3_5", "qwen3_5_moe",
    "qwen3next", "qwen3_next", "glm4moelite", "gemma4", "gemma4_text",
})  # fmt: skip
FLASH_SINCE: Final = ByVersion((("0", False), ("0.12.11", True)))

MINIMUM: Final = 457 * MIB  # discover/gpu.go, cudaMinimumMemory
BATCH: Final = 512
LARGE_MEMORY: Final = ((47 * GIB, 262144), (23 * GIB, 32768), (0, 4096))


def context_by_memory(total: int) -> int:
    """The default context of all cards' memory together (server/routes.go, 0.15.5)."""
    return next(context for least, context in LARGE_MEMORY if total >= least)


def batch_by_context(context: int) -> int:
    """The batch that the server's time starts with (server/sched.go, generationBatchForContext)."""
    if context > 32768:
        return 2048
    return 1024 if context > 4096 else 512


def era_of(version: Version) -> Era:
    """The time of a release."""
    return ERAS.at(version)
