"""What decides: the pool, its groups, the scheduler's limits, and what changed between versions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from kvplan.core.errors import BadValue
from kvplan.core.version import ByVersion, Version

Kind = Literal["full", "window", "chunked", "state"]
Policy = Literal["fcfs", "priority", "shortest"]
Preemption = Literal["recompute", "swap"]

# Released blocks without a key: v1/core/block_pool.py free_blocks; at the tail in 0.22.1, at the
# head in 0.25.1.
KEYLESS_FIRST = ByVersion((("0.6", False), ("0.25.1", True)))
# v1/core/sched/scheduler.py scheduler_reserve_full_isl: absent in 0.16.0, true in 0.19.1.
RESERVE_PROMPT = ByVersion((("0.6", False), ("0.19.1", True)))
# v1/core/kv_cache_coordinator.py prefix_cache_retention_interval: absent in 0.28.0 (every block of
# a window, every state is kept), 0 in 0.30.0.
RETENTION: ByVersion[int | None] = ByVersion((("0.6", None), ("0.30.0", 0)))
# Whole chunks in flight that a window's blocks wait for: 0.26.0 and later (SlidingWindowSpec).
IN_FLIGHT_BOUND = ByVersion((("0.6", False), ("0.26.0", True)))


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheGroup:
    """Layers that share a block table.

    ``window`` is a sliding window's length or a chunk's; ``checkpoint`` says that a state's
    prefill can export the state of its last block boundary (Mamba-2).
    """

    kind: Kind
    block_size: int
    window: int = 0
    checkpoint: bool = False

    def __post_init__(self) -> None:
        if self.block_size < 1:
            raise BadValue(f"A block of {self.block_size} tokens is none.")
        if self.kind in ("window", "chunked") and self.window < 1:
            raise BadValue(f"A {self.kind} group needs the length that it looks back.")


@dataclass(frozen=True, slots=True, kw_only=True)
class PagedSettings:
    """An engine as its scheduler sees it.

    ``num_blocks`` as the engine counts them, the null block among them. ``retention`` None keeps
    every boundary of windows and states, 0 the prompt's end and junctions, else one in so many
    tokens. ``concurrent_batches`` are steps in flight, 2 with ``async_scheduling``.
    """

    num_blocks: int
    groups: tuple[CacheGroup, ...]
    max_num_seqs: int
    max_num_batched_tokens: int
    max_model_len: int
    prefix_caching: bool = True
    policy: Policy = "fcfs"
    preemption: Preemption = "recompute"
    chunked_prefill: bool = True
    long_prefill_token_threshold: int = 0
    watermark: float = 0.0
    reserve_prompt: bool = True
    keyless_first: bool = True
    retention: int | None = 0
    async_scheduling: bool = False
    concurrent_batches: int = 1

    def __post_init__(self) -> None:
        for name in ("num_blocks", "max_num_seqs", "max_num_batched_tokens", "max_model_len"):
            if getattr(self, name) < 1:
                raise BadValue(f"{name} is {getattr(self, name)}; it is at least 1.")
        if not self.groups:
            raise BadValue("A paged cache needs at least one group.")
        if not 0.0 <= self.watermark < 1.0:
            raise BadValue(f"A watermark is a share of the pool, not {self.watermark}.")

    @property
    def hash_block(self) -> int:
        """Tokens of the smallest unit that every group's blocks are made of."""
        return math.gcd(*(group.block_size for group in self.groups))

    @property
    def alignment(self) -> int:
        """Tokens that a hit is a multiple of."""
        return math.lcm(*(group.block_size for group in self.groups))

    @property
    def watermark_blocks(self) -> int:
        """Blocks kept free when a request is admitted beside others."""
        return int(self.watermark * self.num_blocks)

    @property
    def in_flight_tokens(self) -> int:
        """Tokens that may be scheduled and not yet settled."""
        return self.concurrent_batches * self.max_num_batched_tokens

    @property
    def has_states(self) -> bool:
        """Whether prefill chunks end on block boundaries."""
        return self.prefix_caching and any(group.kind == "state" for group in self.groups)


def version_rules(version: str) -> dict[str, bool | int | None]:
    """The settings that a version of vLLM decides, by their names.

    Raises:
        BadValue: not a version.
    """
    at = Version.parse(version)
    return {
        "keyless_first": KEYLESS_FIRST.at(at),
        "reserve_prompt": RESERVE_PROMPT.at(at),
        "retention": RETENTION.at(at),
    }
