"""The chance that sequences of drawn lengths outgrow the pool, so that one of them is preempted.

At a random moment a sequence of prompt P and answer O holds P + U × O tokens, U even from 0 to 1:
how far its answer is. So many of them are drawn again and again, with a seed.
"""

from __future__ import annotations

from bisect import bisect_left
from random import Random
from typing import Final

from kvplan.engines.base import EnginePlan
from kvplan.planning.advise.goal import Traffic

DRAWS: Final = 2000
MOST_LENGTHS: Final = 200_000  # drawn in all: of many sequences the sum varies little
POINTS: Final = 64
SEED: Final = 20


def preemption_risk(plan: EnginePlan, traffic: Traffic, sequences: int) -> float:
    """The share of moments at which ``sequences`` of one replica hold more than its pool."""
    longest = traffic.peak_tokens
    lengths = sorted({max(1, longest * i // POINTS) for i in range(1, POINTS + 1)})
    held = [float(plan.sequence_bytes(tokens)) for tokens in lengths]
    pool = plan.pool.num_bytes
    if sequences * held[-1] <= pool:
        return 0.0
    rng = Random(SEED)
    over, draws = 0, max(100, min(DRAWS, MOST_LENGTHS // sequences))
    for _ in range(draws):
        total = 0.0
        for _ in range(sequences):
            prompt = traffic.prompt.quantile(rng.random())
            tokens = prompt + rng.random() * traffic.output.quantile(rng.random())
            total += _at(lengths, held, min(tokens, longest))
        over += total > pool
    return over / draws


def _at(lengths: list[int], held: list[float], tokens: float) -> float:
    """Bytes of a length, straight between those that were asked of the plan."""
    place = min(bisect_left(lengths, tokens), len(lengths) - 1)
    if place == 0:
        return held[0]
    x0, x1 = lengths[place - 1], lengths[place]
    return held[place - 1] + (held[place] - held[place - 1]) * (tokens - x0) / (x1 - x0)
