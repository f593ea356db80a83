"""The cost of every step that a shape can take, at some rates."""

from __future__ import annotations

from typing import Final

from kvplan.core.step import AttentionCost, Knot, StepCost
from kvplan.planning.speed.ideal import Ideal
from kvplan.planning.speed.rates import Rates
from kvplan.planning.speed.terms import (
    fixed_s,
    linear_s,
    pair_s,
    pipeline,
    prefill_s,
    read_s,
    sequence_s,
)

# New tokens of a step at which its cost is worked out; between them it is all but straight.
DECODING: Final = (1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256, 384, 512)
# Steps of more tokens have prompts in them and are launched kernel by kernel: the sizes that are
# captured as graphs end here (vLLM 0.32.0, config/vllm.py, max_cudagraph_capture_size).
PREFILLING: Final = (513, 1024, 2048, 4096, 16384)


def step_cost(ideal: Ideal, rates: Rates, source: str) -> StepCost:
    """What any step of one replica takes at these rates."""
    stages, wait = ideal.stages, pipeline(ideal, rates)
    return StepCost(
        fixed_s=fixed_s(ideal, rates) * wait,
        sequence_s=sequence_s(ideal, rates) * wait,
        linear=(
            *(Knot(round(n * stages), linear_s(ideal, rates, n * stages) * wait) for n in DECODING),
            *(
                Knot(round(n * stages), prefill_s(ideal, rates, n * stages) * wait)
                for n in PREFILLING
            ),
        ),
        attention=tuple(
            AttentionCost(
                window=look.window,
                read_s=read_s(look, rates, stages) * wait,
                pair_s=pair_s(look, rates, stages) * wait,
            )
            for look in ideal.looks
        ),
        source=source,
    )
