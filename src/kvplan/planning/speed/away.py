"""Weights that are not on the card: read from host memory by its processor, or over the link."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from kvplan.core import weights as w
from kvplan.engines.base import EnginePlan
from kvplan.planning.speed.shape import Shape
from kvplan.readers.host_links import host_link

# Two channels of DDR5-5600 carry 89.6 GB/s, of DDR4-3200 51.2; processors reach about two thirds.
HOST_BYTES_PER_S: Final = 50_000_000_000


class Away(NamedTuple):
    """The part of the weights that a step reads elsewhere, the seconds it takes, and from where."""

    share: float
    seconds: float
    said: str


def away_of(plan: EnginePlan, shape: Shape) -> Away | None:
    """What a plan keeps away from its cards; None where all is there."""
    host = getattr(getattr(plan, "layout", None), "host", None)
    if host is not None:
        return _in_host_memory(plan, shape, host)
    offloaded = plan.asked.flags.get("--cpu-offload-gb", 0)  # bytes, of one rank
    link = host_link(plan.node.device)
    if not offloaded or link is None:
        return None
    share = min(1.0, offloaded / max(shape.stored_bytes, 1))
    moved = share * shape.stored_bytes
    return Away(share, moved / link.bytes_per_s, f"{link.source} at every step")


def _in_host_memory(plan: EnginePlan, shape: Shape, host: Any) -> Away | None:
    """Layers that llama.cpp leaves to the processor; a table is looked up and not read."""
    layout: Any = getattr(plan, "layout", None)
    held = sum(card.weights for card in layout.cards)
    weights = plan.model.weights
    table = weights.of_role(w.EMBEDDING) / max(weights.parameters, 1) if weights else 0.0
    left = max(0.0, host.weights - table * (held + host.weights))
    share = left / (held + left) if held + left else 0.0
    if share < 0.01:
        return None
    seconds = share * shape.read_bytes / HOST_BYTES_PER_S
    return Away(share, seconds, f"host memory at {HOST_BYTES_PER_S / 1e9:.0f} GB/s, assumed")
