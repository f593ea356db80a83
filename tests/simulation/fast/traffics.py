"""Random traffic for engines that must decide alike, and settings that make them work for it."""

from __future__ import annotations

import random

import numpy as np

from kvplan.core.step import AttentionCost, Knot, StepCost
from kvplan.simulation.paged.settings import CacheGroup, PagedSettings
from kvplan.simulation.traffic import Traffic

FULL = CacheGroup(kind="full", block_size=16)
GROUPS: dict[str, tuple[CacheGroup, ...]] = {
    "full": (FULL,),
    "full 7": (CacheGroup(kind="full", block_size=7),),
    "window": (CacheGroup(kind="window", block_size=16, window=100),),
    "window and full": (CacheGroup(kind="window", block_size=16, window=128), FULL),
    "five windows": (FULL, *(CacheGroup(kind="window", block_size=16, window=48),) * 5),
    "two windows, two sizes": (
        CacheGroup(kind="full", block_size=32),
        CacheGroup(kind="window", block_size=16, window=64),
        CacheGroup(kind="window", block_size=16, window=256),
    ),
    "chunks": (CacheGroup(kind="chunked", block_size=16, window=128), FULL),
    "states": (*(CacheGroup(kind="state", block_size=80),) * 3,
               CacheGroup(kind="full", block_size=80)),
    "exported states": (*(CacheGroup(kind="state", block_size=96, checkpoint=True),) * 2,
                        CacheGroup(kind="full", block_size=96)),
}  # fmt: skip
COST = StepCost(
    fixed_s=0.004,
    sequence_s=2e-6,
    linear=(Knot(1, 0.01), Knot(64, 0.011), Knot(512, 0.05)),
    attention=(
        AttentionCost(window=None, read_s=3e-8, pair_s=2e-10),
        AttentionCost(window=100, read_s=5e-8, pair_s=1e-10),
    ),
    source="a test",
)
SHAPES = ("unique", "shared", "chat", "identical", "closed")


def settings(name: str, seed: int) -> PagedSettings:
    """Limits that are reached: few blocks, few sequences, small steps."""
    rng = random.Random(f"{name}{seed}")
    groups = GROUPS[name]
    return PagedSettings(
        num_blocks=rng.choice((60, 100, 400)) * max(1, len(groups) // 2),
        groups=groups,
        max_num_seqs=rng.choice((3, 16, 64)),
        max_num_batched_tokens=rng.choice((128, 512, 2048)),
        max_model_len=700,
        prefix_caching=rng.random() < 0.85,
        policy=rng.choice(("fcfs", "fcfs", "priority", "shortest")),
        long_prefill_token_threshold=rng.choice((0, 0, 100)),
        watermark=rng.choice((0.0, 0.0, 0.1)),
        reserve_prompt=rng.random() < 0.7,
        keyless_first=rng.random() < 0.7,
        retention=rng.choice((0, 0, None, 480)),
    )


def traffic(shape: str, seed: int, size: int = 120) -> Traffic:
    """Requests whose ids of 32 tokens say what they share."""
    rng = random.Random(f"{shape}{seed}")
    names = iter(range(1, 1 << 20))
    rows: list[tuple[float, int, int, int, float, int]] = []
    ids: list[list[int]] = []
    shared = [[next(names) for _ in range(8)] for _ in range(4)]
    clock, rate = 0.0, rng.choice((5.0, 20.0, 100.0))
    for index in range(size):
        clock += rng.expovariate(rate)
        before = (
            rng.randrange(index) if shape == "chat" and index > 5 and rng.random() < 0.6 else -1
        )
        if before >= 0:
            own = [*ids[before], *(next(names) for _ in range(rng.randrange(1, 5)))]
        elif shape == "unique":
            own = []
        elif shape == "identical":
            own = shared[rng.randrange(3)]
        else:
            own = [*shared[rng.randrange(4)][: rng.randrange(3, 9)], next(names)]
        prompt = max(1, 32 * len(own) - rng.randrange(32)) if own else rng.randrange(1, 400)
        output = rng.choice((1, rng.randrange(1, 20), rng.randrange(1, 200)))
        rows.append((clock, prompt, output, before, rng.random(), rng.randrange(3)))
        ids.append(own)
    times, prompts, outputs, after, think, priority = zip(*rows, strict=True)
    return Traffic(
        arrival_s=np.array(times) if shape != "closed" else np.zeros(size),
        prompt_tokens=np.array(prompts, np.int64),
        output_tokens=np.array(outputs, np.int64),
        after=np.array(after, np.int64),
        think_s=np.array(think),
        priority=np.array(priority, np.int64),
        hash_ids=np.array([name for own in ids for name in own], np.int64),
        hash_starts=np.cumsum([0, *map(len, ids)], dtype=np.int64),
        hash_block=32,
        source="a test",
        max_in_flight=rng.choice((2, 10, 40)) if shape == "closed" else None,
    )
