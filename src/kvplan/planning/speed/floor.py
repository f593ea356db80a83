"""How fast memory alone lets a model decode: bytes that a step has to read over the bandwidth.

A bound and no prediction: a step cannot be faster than reading the weights its tokens pass through
and the cache its sequences hold, once each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kvplan.engines.base import EnginePlan


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedBound:
    """The least time of one decode step of ``batch`` sequences."""

    batch: int
    weights_read_s: float
    cache_read_s: float

    @property
    def step_s(self) -> float:
        """Weights and cache, one after the other through the same memory."""
        return self.weights_read_s + self.cache_read_s

    @property
    def tokens_per_s_per_sequence(self) -> float:
        """A token a step, at most."""
        return 1 / self.step_s

    def to_dict(self) -> dict[str, Any]:
        """The contract's ``speed`` object."""
        return {
            "batch": self.batch,
            "decode_step_floor_s": self.step_s,
            "weights_read_s": self.weights_read_s,
            "cache_read_s": self.cache_read_s,
            "tokens_per_s_per_sequence_floor": self.tokens_per_s_per_sequence,
            "tokens_per_s_floor": self.tokens_per_s_per_sequence * self.batch,
            "estimate": None,
        }


def speed_bound(plan: EnginePlan, bandwidth: int | None, batch: int) -> SpeedBound | None:
    """The bound on one rank.

    None without a batch, without a known bandwidth, or where a step reads nothing of the card (all
    layers are in host memory, whose bandwidth is not asked).
    """
    if not batch or not bandwidth:
        return None
    each = -(-batch // plan.replicas)
    weights, cache = plan.weights_read_bytes, plan.read_bytes(plan.asked.context, each)
    if not weights + cache:
        return None
    return SpeedBound(
        batch=batch, weights_read_s=weights / bandwidth, cache_read_s=cache / bandwidth
    )
