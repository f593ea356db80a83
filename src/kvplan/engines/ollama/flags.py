"""Ollama's environment variables and model options, in their own spelling."""

from __future__ import annotations

from kvplan.engines.flags import Flag, FlagTable, size, whole, word
from kvplan.engines.llamacpp.flags import on_off


def variable(name: str, *others: str) -> tuple[str, ...]:
    """``OLLAMA_NUM_PARALLEL`` by every spelling that a command line or Python can have."""
    dashed = name.lower().replace("_", "-")
    return (f"--{name}", f"--{dashed}", f"--{name.replace('_', '-')}", *others)


def option(name: str) -> tuple[str, ...]:
    """``num_ctx`` and ``num-ctx``."""
    return (f"--{name}", f"--{name.replace('_', '-')}")


CONTEXT = "--num_ctx"
GPU_LAYERS = "--num_gpu"
BATCH = "--num_batch"
PARALLEL = "--OLLAMA_NUM_PARALLEL"
CONTEXT_LENGTH = "--OLLAMA_CONTEXT_LENGTH"
CACHE_TYPE = "--OLLAMA_KV_CACHE_TYPE"
FLASH = "--OLLAMA_FLASH_ATTENTION"
OVERHEAD = "--OLLAMA_GPU_OVERHEAD"
SPREAD = "--OLLAMA_SCHED_SPREAD"
FILE_TYPE = "--quantization"

FLAGS = FlagTable(
    "ollama",
    (
        Flag(option("num_ctx"), whole(4), "Context of one slot (model option)."),
        Flag(option("num_gpu"), whole(0, 1 << 20), "Layers on the cards (model option)."),
        Flag(option("num_batch"), whole(1, 1 << 20), "Batch (model option)."),
        Flag(variable("OLLAMA_CONTEXT_LENGTH"), whole(), "Default context."),
        Flag(variable("OLLAMA_NUM_PARALLEL"), whole(0, 256), "Slots; 0: automatic."),
        Flag(
            variable("OLLAMA_KV_CACHE_TYPE"), word("f16", "q8_0", "q4_0"), "With flash attention."
        ),
        Flag(variable("OLLAMA_FLASH_ATTENTION"), on_off, "1 or 0."),
        Flag(variable("OLLAMA_GPU_OVERHEAD"), size, "Bytes left free on each card."),
        Flag(variable("OLLAMA_SCHED_SPREAD"), None, "Spread over all cards."),
        Flag((FILE_TYPE, "--file-type"), word(), "The file's type, as Q4_K_M."),
    ),
)
