"""Our answer to the simulators' question, in a process of its own: ``python -m`` this, with
``loop REQUESTS`` or ``trace FILE``; prints what it took without starting Python.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

import numpy as np

from kvplan.core.step import Knot, StepCost
from kvplan.simulation.fast.engine import simulate
from kvplan.simulation.outcome import Outcome
from kvplan.simulation.paged.settings import CacheGroup, PagedSettings
from kvplan.simulation.traces import read_traffic
from kvplan.simulation.traffic import Traffic

SETTINGS = PagedSettings(
    num_blocks=30_000,
    groups=(CacheGroup(kind="full", block_size=16),),
    max_num_seqs=256,
    max_num_batched_tokens=8192,
    max_model_len=131_072,
)
# A decoding step takes 10 ms, one with a whole budget of prompt tokens 30 ms.
COST = StepCost(
    fixed_s=0.0, sequence_s=0.0, attention=(), linear=(Knot(256, 0.01), Knot(8192, 0.03)),
    source="a constant",
)  # fmt: skip


def loop(requests: int, prompt: int = 1000, output: int = 200) -> Traffic:
    """Equal requests of 256 clients."""
    zeros = np.zeros(requests, np.int64)
    return Traffic(
        arrival_s=np.zeros(requests),
        prompt_tokens=zeros + prompt,
        output_tokens=zeros + output,
        after=zeros - 1,
        think_s=np.zeros(requests),
        priority=zeros,
        hash_ids=zeros[:0],
        hash_starts=np.zeros(requests + 1, np.int64),
        hash_block=16,
        source="equal requests",
        max_in_flight=256,
    )


def main() -> None:
    """One question, timed from here on."""
    kind, value = sys.argv[1:3]
    wall, cpu = time.perf_counter(), time.process_time()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    traffic = loop(int(value)) if kind == "loop" else read_traffic(Path(value))
    outcome: Outcome = simulate(traffic, SETTINGS, COST)
    held = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    print(json.dumps({
        "requests": len(traffic),
        "finished": int(np.isfinite(outcome.finished_s).sum()),
        "wall_s": time.perf_counter() - wall,
        "cpu_s": time.process_time() - cpu,
        "held_bytes": held,
        "steps": outcome.num_steps,
        "hit_rate": float(outcome.hit_tokens.sum()) / max(1, outcome.queried_tokens),
    }))  # fmt: skip


if __name__ == "__main__":
    main()
