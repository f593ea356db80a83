"""A model cut over the cards of tensor parallelism: which sizes divide, and one rank's share."""

from __future__ import annotations

from kvplan.core.cross import CrossAttention
from kvplan.core.curve import Curve
from kvplan.core.formats import Format
from kvplan.core.latent import LatentAttention
from kvplan.core.layers import FullAttention, Layer
from kvplan.core.model import Model


def query_heads(model: Model) -> list[int]:
    """The numbers of query heads that tensor parallelism has to divide."""
    found = set()
    for layer, _ in model.layers():
        if isinstance(layer, FullAttention | LatentAttention):
            found.add(layer.query_heads)
        elif isinstance(layer, CrossAttention):
            found.add(layer.kv_heads)
    return sorted(found)


def divides(model: Model, tp: int) -> bool:
    """Whether every attention's query heads are a multiple of ``tp``."""
    return all(heads % tp == 0 for heads in query_heads(model))


def nearest_sizes(model: Model, tp: int) -> list[int]:
    """The largest size below ``tp`` that divides, and the least above it."""
    below = next((size for size in range(tp - 1, 0, -1) if divides(model, size)), 1)
    most = max(query_heads(model), default=1)
    above = next((size for size in range(tp + 1, most + 1) if divides(model, size)), None)
    return [below] if above is None else [below, above]


def rank_curve(model: Model, tp: int, fmt: Format) -> Curve:
    """Bytes of one sequence on one of ``tp`` ranks."""
    if tp == 1:
        return model.curve(fmt)
    counts: dict[Layer, int] = {}
    for layer, count in model.layers():
        shared = layer.on_rank(tp)
        counts[shared] = counts.get(shared, 0) + count
    return Curve(tuple(counts.items()), fmt)
