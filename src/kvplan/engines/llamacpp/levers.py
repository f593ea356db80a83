"""What to change of a llama.cpp start, each a question to ask again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from kvplan.core.errors import BadValue
from kvplan.core.formats import FORMATS
from kvplan.engines.base import Change, EnginePlan
from kvplan.engines.llamacpp.caches import row_bytes
from kvplan.engines.llamacpp.plan import LlamaPlan

MOST_SLOTS: Final = 256


def changes_of(plan: EnginePlan) -> Iterator[Change]:
    """The levers that apply."""
    assert isinstance(plan, LlamaPlan)
    settings, asked = plan.settings, plan.asked

    def other(name: str, said: str, note: str = "", **flags: Any) -> Change:
        changed = replace(asked, flags={**asked.flags, **_named(flags)})
        return Change(name, said, plan.model, plan.node, changed, note)

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


def _named(flags: dict[str, Any]) -> dict[str, Any]:
    return {f"--{name.replace('_', '-')}": value for name, value in flags.items()}


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
