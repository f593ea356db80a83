"""What llama.cpp and Ollama could not allocate, in words with the lever.

weights ─► cache ─► states ─► buffers of the graph ─► at work: an encoder's, a longer batch's
"""

from __future__ import annotations

from collections.abc import Mapping

from kvplan.core.units import format_bytes, format_gib
from kvplan.logs.facts import Start, Value
from kvplan.logs.ledger import is_host
from kvplan.logs.pool import pool_of

Numbers = Mapping[str, Value]

ENGINES = ("llama.cpp", "ik_llama.cpp", "ollama")


def weights_too_large(start: Start, numbers: Numbers) -> str:
    """The weights of a device, or of the machine."""
    needed, free = numbers.get("needed_bytes"), numbers.get("free_host_bytes")
    if isinstance(needed, int) and isinstance(free, int):
        return (
            f"The model needs {format_gib(needed)} of memory and {format_gib(free)} are free: "
            f"{format_gib(needed - free)} short, before any cache."
        )
    fewer = "fewer layers on the card"
    if is_host(str(numbers.get("device", ""))):
        fewer = "more layers on a card"
    return f"The weights do not fit{_of(numbers)}: {fewer}, or a smaller file.{_limit(numbers)}"


def cache_too_large(start: Start, numbers: Numbers) -> str:
    """The cache is allocated whole at the start."""
    return (
        f"The cache does not fit{_of(numbers)}. It is allocated whole at the start: a shorter "
        f"context, fewer slots or a quantised type make it smaller.{_limit(numbers)}"
    )


def states_too_large(start: Start, numbers: Numbers) -> str:
    """Recurrent states: one a slot, of a size that no length changes."""
    slots = start.number("kv_sequences")
    each = f" There are {int(slots):,} slots." if slots and slots > 1 else ""
    fewer = "OLLAMA_NUM_PARALLEL=1" if start.engine == "ollama" else "--parallel 1"
    return (
        f"The recurrent states do not fit{_of(numbers)}. Every slot has one, and no shorter "
        f"context makes it smaller: {fewer} does, or fewer layers on the card.{each}"
    )


def buffers_too_large(start: Start, numbers: Numbers) -> str:
    """The graph's buffer, after the cache is there already."""
    pool = pool_of(start).num_bytes
    made = f" The cache ({format_bytes(pool)}) was made before it." if pool else ""
    flash = start.last("flash_attention")
    said = str(flash.value) if flash is not None else ""
    scores, levers = "", "A smaller --ubatch-size, flash attention or a shorter context make"
    if said in ("0", "disabled", "off"):
        scores = " Without flash attention it holds the scores of every token of the context."
    elif said in ("1", "enabled", "on"):
        levers = "A smaller --ubatch-size or a shorter context make"
    return (
        f"The buffer of the graph does not fit{_of(numbers)}.{made}{scores}{_copies(start)} "
        f"{levers} it smaller.{_limit(numbers)}"
    )


def _copies(start: Start) -> str:
    """Copies for pipeline parallelism (src/llama.cpp b4743; ik_llama.cpp pull requests 751, 879).

    With experts in host memory their matrices are among what is copied.
    """
    copies = start.number("pipeline_copies")
    if not copies or copies < 2:
        return ""
    return (
        f" Pipeline parallelism keeps {int(copies)} copies of what each part of the graph takes "
        "in: a build with -DGGML_SCHED_MAX_COPIES=1 keeps one."
    )


def values_need_flash_attention(start: Start, numbers: Numbers) -> str:
    """A quantised V cache is read by the flash attention kernel alone."""
    ollama = start.engine == "ollama"
    keep = "leave OLLAMA_KV_CACHE_TYPE at f16" if ollama else "keep --cache-type-v f16"
    if start.last("flash_attention_refused") is not None:
        return (
            "Values of a quantised type are read by flash attention alone, which this build does "
            f"not have for this model: {keep}."
        )
    pass_on = "set OLLAMA_FLASH_ATTENTION=1" if ollama else "pass --flash-attn on"
    return f"Values of a quantised type are read by flash attention alone: {pass_on}, or {keep}."


def out_of_memory(start: Start, numbers: Numbers, of: str) -> str:
    """An allocation of which no line says what it was for; ``of`` is the allocation."""
    if numbers.get("encoding_image"):
        return (
            f"{of} failed while an image was read: the encoder's buffer grows with the image, and "
            "comes on top of everything else. Smaller images, or --no-mmproj-offload, which keeps "
            "the encoder in host memory."
        )
    if start.last("serving") is not None:
        return (
            f"{of} failed while a request ran, after the start: what a batch takes at work (its "
            "graph, an encoder) had no room. Leave more of the card free: fewer layers on it, a "
            "smaller batch or a shorter context."
        )
    if pool_of(start).num_bytes:
        return (
            f"{of} failed after the cache was made: the buffer of the graph had no room. Fewer "
            "layers on the card, a smaller batch or a shorter context leave more."
        )
    return (
        f"{of} failed, and no line says what it was for: weights are allocated first, then the "
        "cache, then the buffers of the graph."
    )


def _of(numbers: Numbers) -> str:
    """`` on CUDA0 (8.69 GiB were refused)``, as far as it is said."""
    device, size = numbers.get("device"), numbers.get("requested_bytes")
    on = f" on {device}" if device else ""
    if is_host(str(device or "")):
        on = " in host memory"
    return f"{on} ({format_bytes(size)} were refused)" if isinstance(size, int) else on


def _limit(numbers: Numbers) -> str:
    """Vulkan's own limit of one allocation (ggml-vulkan.cpp b4743, ggml_vk_create_buffer)."""
    if not numbers.get("allocation_limit"):
        return ""
    return " The refused size is more than the driver gives in one allocation, whatever is free."
