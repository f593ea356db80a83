"""How fast memory alone lets a model decode: bytes that a step has to read over the bandwidth.

A bound and no prediction: a step cannot be faster than reading the weights its tokens pass through
and the cache its sequences hold, once each. Of a mixture those are the experts that so many tokens
draw if they draw evenly; what all sequences share is read once, as the kernels that can do. A token
waits for all cards that take turns, and for what is read from elsewhere no faster than from a card.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kvplan.engines.base import EnginePlan
from kvplan.planning.speed.bound import work_of
from kvplan.planning.speed.figures import NO_WORKLOAD, SpeedEstimate, Workload, speed_estimate
from kvplan.planning.speed.measured import applies, reads_of


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedBound:
    """The least time of one decode step of ``batch`` sequences, and the estimate beside it."""

    batch: int
    weights_read_s: float
    cache_read_s: float
    estimate: SpeedEstimate | None = None

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
            "estimate": self.estimate.to_dict() if self.estimate else None,
        }


def speed_bound(
    plan: EnginePlan, bandwidth: int | None, batch: int, workload: Workload = NO_WORKLOAD
) -> SpeedBound | None:
    """The bound on one rank.

    None without a batch, without a known bandwidth, or where a step reads nothing of the card (all
    layers are in host memory, whose bandwidth is not asked and not measured).
    """
    own = applies(plan)
    on_host = own is not None and own.card is None
    bandwidth = own.bandwidth if on_host and own else bandwidth
    if not batch or not bandwidth:
        return None
    each = -(-batch // plan.replicas)
    weights, cache = _weights(plan, bandwidth, each), _cache(plan, bandwidth, each)
    reads = reads_of(plan) if on_host and not weights + cache else None
    if reads is not None:
        weights, cache = reads.weights_bytes, each * plan.asked.context * reads.token_bytes
    if not weights + cache:
        return None
    return SpeedBound(
        batch=batch,
        weights_read_s=weights / bandwidth,
        cache_read_s=cache / bandwidth,
        estimate=speed_estimate(plan, bandwidth, batch, workload),
    )


def _weights(plan: EnginePlan, bandwidth: int, each: int) -> float:
    """Bytes of weights: those of one token, and the further experts that a batch draws."""
    least = float(plan.weights_read_bytes)
    work = work_of(plan, bandwidth)
    if work is not None and work.shape.cut.turns > 1 and least:
        least = work.shape.read_bytes
    experts = work.shape.experts if work else None
    if work is None or experts is None or not least:
        return least
    tokens = each * work.shape.cut.lockstep
    drawn = 1 - (1 - experts.drawn_share) ** tokens
    # A stage reads its part of them.
    return least + (drawn - experts.drawn_share) * experts.matrices.num_bytes / work.shape.cut.pp


def _cache(plan: EnginePlan, bandwidth: int, each: int) -> float:
    """Bytes of cache, what is shared once.

    An engine may keep more than its kernels look at (windows in a pool of whole sequences, rows
    that an indexer passes over): what they look at is the least.
    """
    context = plan.asked.context
    every = float(plan.read_bytes(context, each))
    work = work_of(plan, bandwidth)
    if work is None:
        return every
    shape, stages = work.shape, work.shape.cut.pp
    seen = shape.state_bytes / 2 + sum(
        look.num_bytes * min(context, look.window or context) for look in shape.looks
    )
    shared = min(plan.asked.shared_prefix, context)
    again = sum(look.num_bytes for look in shape.looks if look.window is None)
    looked = each * seen / stages
    least = looked if shape.cut.turns > 1 else min(every, looked)
    return max(0.0, least - (each - 1) * shared * again / stages)
