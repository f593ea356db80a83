"""What became of the traffic: a column a fact of every request, and the course of the engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """The engine at sampled times: rows of equal length.

    ``used_blocks`` are those that a request holds; ``hit_tokens``, ``queried_tokens`` and
    ``preemptions`` are counts since the start.
    """

    time_s: Floats
    used_blocks: Ints
    running: Ints
    waiting: Ints
    queried_tokens: Ints
    hit_tokens: Ints
    preemptions: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Times of every request in seconds from the traffic's start, NaN where one never came.

    ``arrived_s`` is when it was really sent (after its predecessor, or its place in a closed loop);
    ``admitted_s`` its first scheduling; ``rejected`` requests can never fit and never ran.
    ``recomputed_tokens`` are those computed again after preemptions.
    """

    arrived_s: Floats
    admitted_s: Floats
    first_token_s: Floats
    finished_s: Floats
    hit_tokens: Ints
    preemptions: Ints
    rejected: NDArray[np.bool_]
    duration_s: float
    num_steps: int
    queried_tokens: int
    computed_tokens: int
    recomputed_tokens: int
    evicted_blocks: int
    num_blocks: int
    mean_used_blocks: float
    peak_used_blocks: int
    mean_running: float
    max_running: int
    mean_waiting: float
    max_waiting: int
    timeline: Timeline
