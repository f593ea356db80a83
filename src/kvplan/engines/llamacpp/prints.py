"""The lines that a build prints of its caches, to be held against a log.

Sizes are float32 MiB with two decimals, as C prints them (src/llama-kv-cache.cpp and
llama-memory-recurrent.cpp, b11434; ik_llama.cpp, src/llama.cpp).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from kvplan.core.units import MIB
from kvplan.engines.llamacpp.caches import (
    ATTENTION,
    COMPRESSOR,
    RECURRENT,
    WINDOW,
    Cache,
    Caches,
)
from kvplan.engines.llamacpp.rules import IK, Line

WINDOW_TITLES: Final = {ATTENTION: "non-SWA", WINDOW: "    SWA"}


def mib(num_bytes: int) -> float:
    """MiB as a float of C: ``149.625`` prints as 149.62."""
    found: float = struct.unpack("f", struct.pack("f", num_bytes / MIB))[0]
    return found


def cache_lines(caches: Caches) -> tuple[str, ...]:
    """Every cache's lines in the order of the log."""
    if caches.settings.rules.line is Line.SELF_SIZE:
        return tuple(_self_size(caches))
    return tuple(_sized(caches))


def _sized(caches: Caches) -> Iterator[str]:
    rules = caches.settings.rules
    for cache in caches.announced():
        if cache.name == RECURRENT:
            yield _recurrent(caches, cache)
        elif cache.name == COMPRESSOR:
            continue
        else:
            if caches.geometry.windowed and cache.name in WINDOW_TITLES:
                title = WINDOW_TITLES[cache.name]
                name = f"{rules.cache_name}_iswa"
                yield f"{name}: creating {title} KV cache, size = {cache.cells} cells"
            yield _size(caches, cache)


def _size(caches: Caches, cache: Cache) -> str:
    settings = caches.settings
    slots = f"{settings.slots:2d}"
    if settings.rules.line is Line.STREAMS:
        slots += f"/{cache.streams}"
    elif settings.rules.line is Line.WIDE_STREAMS:
        slots += f"/{cache.streams:2d}"
    return (
        f"{settings.rules.cache_name}: size = {mib(cache.num_bytes):7.2f} MiB "
        f"({cache.cells:6d} cells, {cache.layers:3d} layers, {slots} seqs), "
        f"K ({cache.k_type}): {mib(cache.k_bytes):7.2f} MiB, "
        f"V ({cache.v_type}): {mib(cache.v_bytes):7.2f} MiB"
    )


def _recurrent(caches: Caches, cache: Cache) -> str:
    settings = caches.settings
    snapshots = f" {settings.snapshots:2d} rs_seq" if settings.rules.snapshots else ""
    third = f", P (f32): {mib(0):7.2f} MiB" if settings.rules.state_parts > 2 else ""
    return (
        f"llama_memory_recurrent: size = {mib(cache.num_bytes):7.2f} MiB "
        f"({settings.slots:6d} cells, {cache.layers:3d} layers, {settings.slots:2d} seqs"
        f"{snapshots}), R (f32): {mib(cache.k_bytes):7.2f} MiB, "
        f"S (f32): {mib(cache.v_bytes):7.2f} MiB{third}"
    )


def _self_size(caches: Caches) -> Iterator[str]:
    settings = caches.settings
    found = caches.announced()
    k, v = sum(cache.k_bytes for cache in found), sum(cache.v_bytes for cache in found)
    start = f"{settings.rules.cache_name}: KV self size  = {mib(k + v):7.2f} MiB"
    latent = any(kept.rows and kept.rows.latent for kept in caches.geometry.blocks.kinds)
    if settings.rules.flavour == IK and latent and settings.mla:
        second = f"kv^T ({settings.v.name}): {mib(v):7.2f} MiB" if v else "kv^T: not used"
        yield f"{start}, c^KV ({settings.k.name}): {mib(k):7.2f} MiB, {second}"
        return
    k_type = found[0].k_type if found else settings.k.name
    v_type = found[0].v_type if found else settings.v.name
    yield f"{start}, K ({k_type}): {mib(k):7.2f} MiB, V ({v_type}): {mib(v):7.2f} MiB"
