"""CUDA graphs: how many are captured, what they take, and whether the budget pays for them.

    <= 0.17   on top of the budget
    0.18 on   estimated before the pool is sized: two captures of each mode, extrapolated
    0.20 on   the estimate is taken from the pool; the second runner estimates nothing before 0.29
              and captures on top

vllm/v1/worker/gpu_model_runner.py, profile_cudagraph_memory (0.19.0); envs.py,
VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS; v1/worker/gpu/model_runner.py (0.25.1, 0.29.0);
config/vllm.py, _set_cudagraph_sizes.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from kvplan.core.units import GIB, MIB
from kvplan.core.version import Version

INSIDE_SINCE = Version((0, 20))
SECOND_RUNNER_SINCE = Version((0, 29))
LARGEST: Final = 512
LARGEST_BLACKWELL: Final = 1024

# Eight logs of 0.19 with 51 sizes in two modes: first captures of 100 to 262 MiB, then 4 to 10 MiB
# a size and mode; that is 0.33 MiB a layer and pair of graphs, within a third.
FIRST: Final = 200 * MIB
PER_LAYER: Final = MIB // 3
ERROR: Final = 0.45


class Graphs(NamedTuple):
    """Bytes that graphs take, their error, whether the pool is smaller by them, and why."""

    num_bytes: int
    error: int
    inside: bool
    source: str


def capture_sizes(sequences: int, largest: int) -> int:
    """How many sizes are captured: 1, 2, 4, whole eights below 256, whole sixteens from there.

    ``capture_sizes(1024, 512) == 51`` and ``capture_sizes(32, 512) == 11``.
    """
    most = min(2 * max(sequences, 1), largest)
    small = sum(size <= most for size in (1, 2, 4))
    eights = max(0, (min(most, 255)) // 8)
    return small + eights + (max(0, most - 256) // 16 + 1 if most >= 256 else 0)


def graphs_of(
    version: Version, *, layers: int, sequences: int, second_runner: bool, blackwell: bool
) -> Graphs:
    """What a rank's graphs take."""
    largest = LARGEST_BLACKWELL if blackwell and version >= INSIDE_SINCE else LARGEST
    sizes = capture_sizes(sequences, largest)
    num_bytes = FIRST + sizes * layers * PER_LAYER * 9 // 10
    estimated = not second_runner or version >= SECOND_RUNNER_SINCE
    inside = version >= INSIDE_SINCE and estimated
    said = f"{sizes} sizes in two modes over {layers} layers"
    if not inside:
        said += ", captured on top of the budget"
    return Graphs(num_bytes, round(num_bytes * ERROR) + GIB // 16, inside, said)
