"""Spaces and goals that tests search: every value drawn with a seed."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from kvplan.planning.advise.candidate import Sized
from kvplan.planning.advise.goal import Goal, read_goal
from kvplan.planning.advise.outcome import Outcome, outcome
from kvplan.planning.advise.search import Space, sized
from kvplan.planning.cost.pricing import pricing_of
from kvplan.readers.devices import find_device
from kvplan.readers.open_model import open_model

CARDS = (
    "l4",
    "l40s",
    "a100-sxm-80gb",
    "h100-sxm-80gb",
    "h200",
    "mi300x",
    "rtx-5090",
    "gb10",
)
MODELS = (
    "llama-3.1-8b",
    "qwen3-32b",
    "gpt-oss-120b",
    "qwen3-30b-a3b",
    "gemma-3-27b-it",
)


def drawn(seed: int) -> tuple[Space, Goal]:
    """A model, a few cards, and goals that bind more or less."""
    rng = Random(seed)
    names = rng.sample(CARDS, rng.randint(1, 3))
    space = Space(
        models=(open_model(rng.choice(MODELS), offline=True),),
        devices=tuple(find_device(name)[0] for name in names),
        named=True,
        engine=rng.choice(("vllm", "vllm", "sglang")),
        version=None,
        pricing=pricing_of(whole_instances=rng.random() < 0.3),
        quantise=rng.random() < 0.3,
    )
    return space, read_goal(**asked(rng))


def asked(rng: Random) -> dict[str, Any]:
    """Goals as a person gives them."""
    found: dict[str, Any] = {"max_gpus": rng.choice((1, 2, 5, 8, 12, 16))}
    if rng.random() < 0.6:
        found |= {"users": rng.choice((1, 3, 10, 40, 150))}
        if rng.random() < 0.4:
            found["think"] = f"{rng.choice((5, 30, 90))}s"
    else:
        found |= {"rate": rng.choice((0.05, 0.5, 3.0, 20.0))}
    if rng.random() < 0.5:
        found["context"] = rng.choice(("4k", "16k", "32k"))
    else:
        found |= {"prompt": rng.choice((500, "lognormal:1500,0.7", "uniform:100-6000")),
                  "output": rng.choice((100, "lognormal:300,0.5"))}  # fmt: skip
    if rng.random() < 0.7:
        found["tpot"] = f"{rng.choice((15, 30, 60))}ms"
    if rng.random() < 0.6:
        found["ttft"] = f"{rng.choice((0.3, 1, 4))}s"
    if rng.random() < 0.3:
        found["budget"] = f"{rng.choice((2, 10, 40))}/h"
    if rng.random() < 0.3:
        found["hit_rate"] = rng.choice((0.5, 0.9))
    return found


def every(space: Space, goal: Goal) -> Iterator[Outcome]:
    """Every candidate on every number of replicas, one after the other."""
    planned: list[Sized] = sized(space, goal)[0]
    for one in planned:
        for replicas in range(1, max(1, goal.max_gpus // one.cards) + 1):
            if replicas * one.cards <= goal.max_gpus:
                yield outcome(one, goal, replicas)
