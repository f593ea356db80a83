"""What to change of a llama.cpp start, each a question to ask again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from kvplan.core.errors import BadValue
from kvplan.core.formats import FORMATS
from kvplan.engines.base import Change, EnginePlan
from kvplan.engines.llamacpp.caches import row_bytes
from kvplan.engines.llamacpp.nearest import context_that_fits, layers_that_fit
from kvplan.engines.llamacpp.plan import LlamaPlan
from kvplan.engines.names import flags_of

MOST_SLOTS: Final = 256
SMALL_BATCH: Final = 128


def changes_of(plan: EnginePlan) -> Iterator[Change]:
    """The levers that apply."""
    assert isinstance(plan, LlamaPlan)
    settings, asked = plan.settings, plan.asked

    def other(name: str, said: str, note: str = "", **flags: Any) -> Change:
        changed = replace(asked, flags={**asked.flags, **flags_of(flags)})
        return Change(name, said, plan.model, plan.node, changed, note)

    if not plan.starts:
        yield from _that_start(plan)
    wanted, context = asked.concurrency or 1, asked.context
    if wanted <= MOST_SLOTS and plan.capacity(context).sequences < wanted:
        apart: dict[str, Any] = {"parallel": wanted, "ctx_size": wanted * context}
        said = f"--parallel {wanted} --ctx-size {wanted * context}"
        yield other("a slot for each", said, "as many cells as are asked for", **apart)
        if _divides(plan, "q8_0") and settings.k.name == "f16":
            halved = {"cache_type_k": FORMATS["q8_0"], "cache_type_v": FORMATS["q8_0"]}
            said += " --cache-type-k q8_0 --cache-type-v q8_0"
            yield other("a slot for each in q8_0", said, "needs flash attention", **apart, **halved)
    for kind in ("q8_0", "q4_0"):
        if settings.k.name == "f16" and settings.v.name == "f16" and _divides(plan, kind):
            fmt = FORMATS[kind]
            said = f"--cache-type-k {kind} --cache-type-v {kind}"
            note = "needs flash attention; states stay in float32"
            yield other(f"{kind} cache", said, note, cache_type_k=fmt, cache_type_v=fmt)
    if settings.slots < MOST_SLOTS:
        twice = min(2 * settings.slots, MOST_SLOTS)
        cells = settings.cells * settings.streams
        if not settings.unified:
            said = f"--parallel {twice} --ctx-size {2 * cells}"
            note = "each slot keeps its context"
            yield other("twice the slots", said, note, parallel=twice, ctx_size=2 * cells)
        else:
            said = f"--parallel {twice} --kv-unified"
            note = "the same cells, shared by more"
            yield other("twice the slots", said, note, parallel=twice, kv_unified=True)
    if any(plan.layout.request.buffers.parts.experts) and not plan.layout.request.experts:
        note = "experts are read from host memory at every step: slower"
        yield other("experts in host memory", "--cpu-moe", note, cpu_moe=True)
    if plan.layout.request.buffers.error and not asked.flags.get("--quantization"):
        note = "another file, with other quality"
        yield other("4-bit weights", "a Q4_K_M file", note, quantization="Q4_K_M")
    more = replace(plan.node, gpus=2 * plan.node.gpus)
    note = "layers are dealt out: memory adds up, speed does not"
    yield Change("twice the cards", f"--gpus {more.gpus}", plan.model, more, asked, note)


def _that_start(plan: LlamaPlan) -> Iterator[Change]:
    """What lets a start fit that does not: a smaller graph, fewer cells, fewer layers."""
    settings, asked = plan.settings, plan.asked

    def flagged(name: str, flag: str, value: Any, note: str, context: int = 0) -> Change:
        flags = {**asked.flags, flag: value}
        changed = replace(asked, flags=flags, context=min(asked.context, context or asked.context))
        return Change(name, f"{flag} {value}", plan.model, plan.node, changed, note)

    if not settings.flash_attention:
        note = "no scores of all tokens are kept beside the cache"
        yield flagged("flash attention", "--flash-attn", "on", note)
    if settings.ubatch > SMALL_BATCH:
        note = "a smaller graph; prompts are read more slowly"
        yield flagged("smaller batch", "--ubatch-size", SMALL_BATCH, note)
    if cells := context_that_fits(plan.layout, plan.node):
        slot = cells if settings.unified else cells // settings.streams
        yield flagged("shorter context", "--ctx-size", cells, "the longest that fits", slot)
    if layers := layers_that_fit(plan.layout, plan.node):
        note = "the other layers, and their cache, are in host memory: slower"
        yield flagged("fewer layers on the cards", "--n-gpu-layers", layers, note)


def _divides(plan: LlamaPlan, kind: str) -> bool:
    """Whether every row is a whole number of the type's blocks."""
    rows = (kept.rows for kept in plan.layout.request.geometry.blocks.kinds)
    try:
        for kept in rows:
            if kept:
                row_bytes(FORMATS[kind], kept.latent + kept.rope or kept.k)
    except BadValue:
        return False
    return True
