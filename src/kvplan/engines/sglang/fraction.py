"""Chunks, captured batches and ``mem_fraction_static`` where they are not given.

All follow from the card's size, which is nvidia-smi's total in MiB; what the fraction leaves is for
activations and graphs. SGLang server_args.py, 0.4.3.post2 to 0.5.18; 0.5.23 arg_groups/
memory_hook.py.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Final

from kvplan.core.version import Version

V046, V049, V052, V054 = map(Version.parse, ("0.4.6", "0.4.9", "0.5.2", "0.5.4"))
V056, V0512, V0515, V0523 = map(Version.parse, ("0.5.6", "0.5.12", "0.5.15", "0.5.23"))

GIB: Final = 1024  # in MiB
MAX_PREFILL_TOKENS: Final = 16384

# By tensor parallel size: 16, 8, 4, 2, 1 (to 0.4.6).
BY_PARALLEL: Final = ((16, 0.79), (8, 0.81), (4, 0.85), (2, 0.87), (1, 0.88))

# Upper bounds in MiB, then one value a step.
STEPS: Final = (20 * GIB, 35 * GIB, 60 * GIB, 90 * GIB, 160 * GIB)
CHUNKS_054: Final = (2048, 2048, 4096, 8192, 8192, 16384)
CHUNKS_0523: Final = (2048, 4096, 4096, 8192, 8192, 16384)
BATCHES_NARROW: Final = (8, 24, 32, 256, 256, 512)  # fewer than 4 tensor parallel ranks
BATCHES_WIDE: Final = (8, 80, 160, 512, 512, 512)

# Sizes that prefill is captured at (0.5.12): (up to, step).
CAPTURED: Final = ((32, 4), (256, 16), (512, 32), (1024, 64), (4096, 256), (1 << 40, 512))

BASE_TOWER: Final = 12 * 24 * 1024**2  # ViT-L/14: twelve matrices of width² in each of 24 layers


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """What the defaults depend on beside the release."""

    memory_mib: int
    tp: int
    pp: int = 1
    dp: int = 1
    dp_attention: bool = False
    speculative: str = ""
    latent: bool = False
    multimodal: bool = False
    tower_parameters: int = 0
    graphs: bool = True
    prefill_graphs: bool = True
    deepep: bool = False


def _step(memory_mib: int) -> int:
    return bisect_right(STEPS, memory_mib)


def default_chunk(version: Version, size: Size) -> int:
    """Tokens of a prefill chunk."""
    memory = size.memory_mib
    if version < V049:
        return 2048 if memory < 25_000 else 8192
    if version < V054:
        return 2048 if memory < 35 * GIB else 8192 if memory < 160 * GIB else 16384
    return (CHUNKS_054 if version < V0523 else CHUNKS_0523)[_step(memory)]


def default_batch(version: Version, size: Size, max_requests: int | None) -> int:
    """The largest decode batch that is captured."""
    memory, narrow = size.memory_mib, size.tp < 4
    if version < V054:
        small = memory < (25_000 if version < V049 else 35 * GIB)
        return (8 if narrow else 80) if small else 160
    step = _step(memory)
    found = (BATCHES_NARROW if narrow else BATCHES_WIDE)[step]
    if step == 1 and version < V056 and narrow:
        found = 16
    if version >= V0523:
        if step == 1:
            found = 48 if narrow else 160
        found = min(found, max_requests or found)
    return found


def captured_sizes(most: int) -> int:
    """How many prefill sizes are captured up to ``most`` tokens."""
    count = start = 0
    for stop, step in CAPTURED:
        count += max(0, min(stop, most) - start) // step
        start = stop
    return count


def default_fraction(version: Version, size: Size, chunk: int, batch: int) -> float:
    """``mem_fraction_static``."""
    if version < V049:
        return _by_parallel(version, size)
    reserved = (
        _reserved_by_card(version, size)
        if version < V054
        else _reserved_by_work(version, size, chunk, batch)
    )
    found = round((size.memory_mib - reserved) / size.memory_mib, 3)
    if not size.multimodal:
        return found
    return found * (0.9 if version < V052 else _tower_factor(size.tower_parameters))


def _by_parallel(version: Version, size: Size) -> float:
    memory = size.memory_mib
    if version >= V046 and memory > 80 * GIB:
        return (memory - 13 * GIB) / memory
    return next(share for ranks, share in BY_PARALLEL if size.tp >= ranks)


def _reserved_by_card(version: Version, size: Size) -> float:
    """MiB left to activations and graphs, 0.4.9 to 0.5.2."""
    memory, ranks = size.memory_mib, size.tp * size.pp
    if memory < 35 * GIB:
        reserved = (2.8 + ranks / 10) * GIB
    elif memory < 160 * GIB:
        reserved = ((9.5 if memory < 90 * GIB else 12) + ranks / 2) * GIB
    else:
        reserved = 32.0 * GIB
    if size.speculative:
        standalone = size.speculative == "STANDALONE" and version >= V052
        reserved += (6 if standalone else 2) * GIB
    return reserved + 4 * GIB * size.dp_attention


def _reserved_by_work(version: Version, size: Size, chunk: int, batch: int) -> float:
    """MiB left to activations and graphs, from 0.5.4."""
    tokens = max(chunk if chunk > 0 else MAX_PREFILL_TOKENS, 2048)
    reserved = 512 + 1.5 * tokens + size.tp * size.pp * GIB / 8
    reserved += 2 * batch if size.graphs or version < V0515 else 0
    if size.dp_attention:
        reserved += batch * size.dp * (4.5 if batch > 300 else 3)
    if version >= V0512 and size.prefill_graphs:
        reserved += 1.5 * GIB if size.latent else 8 * captured_sizes(chunk)
    if size.memory_mib > 60 * GIB:
        reserved = max(reserved, 10 * GIB)
    if size.speculative and size.speculative != "NGRAM" and version < V0515:
        eagle = 4 if version >= V0512 else 2
        reserved += (6 if size.speculative == "STANDALONE" else eagle) * GIB
    return reserved + 2 * GIB * (size.deepep and version >= V0515)


def _tower_factor(parameters: int) -> float:
    """How much a vision encoder takes off: 5%, and 10% for each time it is larger than ViT-L."""
    if not parameters:
        return 1.0
    growth = parameters / BASE_TOWER - 1
    return 0.95 * max(0.8, min(1.05, 1 - 0.1 * growth))
