"""Ollama's plan: what llama.cpp or its own engine holds, and what it expected or measured."""

from __future__ import annotations

from dataclasses import dataclass

from kvplan.core.units import GIB, KIB, MIB
from kvplan.engines.llamacpp.layout import Layout
from kvplan.engines.llamacpp.plan import LlamaPlan
from kvplan.engines.ollama.eras import Era
from kvplan.engines.ollama.estimate import Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class OllamaPlan(LlamaPlan):
    """A llama.cpp plan that Ollama made; ``estimate`` is its expectation in its first time."""

    era: Era
    estimate: Estimate | None = None


def shown(num_bytes: int) -> str:
    """A size as Ollama prints it: ``1.5 GiB``, ``243.9 MiB`` (format/bytes.go, HumanBytes2)."""
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if num_bytes >= unit:
            return f"{num_bytes / unit:.1f} {name}"
    return f"{num_bytes} B"


def estimate_line(found: Estimate, blocks: int, weights: int, output: int) -> str:
    """The scheduler's line with the figures that it placed layers by (source=server.go)."""
    split = ",".join(map(str, found.layers)) if len(found.layers) > 1 else ""
    allocations = " ".join(shown(size) for size in found.allocations)
    figures = (
        f"layers.model={blocks + 1} layers.offload={sum(found.layers)} layers.split={split!r}",
        f'memory.required.full="{shown(found.full)}"',
        f'memory.required.partial="{shown(found.partial)}"',
        f'memory.required.kv="{shown(found.cache)}"',
        f'memory.required.allocations="[{allocations}]"',
        f'memory.weights.total="{shown(weights)}"',
        f'memory.weights.nonrepeating="{shown(output)}"',
        f'memory.graph.full="{shown(found.graph.full)}"',
        f'memory.graph.partial="{shown(found.graph.partial)}"',
    )
    return f"msg=offload {' '.join(figures)}".replace("'", '"')


def measured_lines(layout: Layout) -> tuple[str, ...]:
    """The lines of its own engine, the last of which stay (source=device.go)."""
    found = []
    for place, card in enumerate(layout.cards):
        device = f"device=CUDA{place}"
        found.append(f'msg="model weights" {device} size="{shown(card.weights)}"')
        found.append(f'msg="kv cache" {device} size="{shown(card.cache)}"')
    if layout.host.weights:
        found.append(f'msg="model weights" device=CPU size="{shown(layout.host.weights)}"')
    if layout.host.cache:
        found.append(f'msg="kv cache" device=CPU size="{shown(layout.host.cache)}"')
    return tuple(found)
