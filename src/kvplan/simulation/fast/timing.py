"""What a step takes, compiled: ``core/step.py``'s ``StepCost.seconds`` in its order of sums."""

from __future__ import annotations

from kvplan.simulation.fast.compiled import compiled
from kvplan.simulation.fast.layout import Array, Cost


@compiled
def begin_load(cost: Cost) -> None:
    """A step that computes nothing yet."""
    for at in range(len(cost.attention)):
        row = cost.attention[at]
        row.seen = row.below = row.pairs = 0


@compiled
def add_context(cost: Cost, context: int) -> None:
    """A decoding sequence: its new token sees so many, or its window."""
    for at in range(len(cost.attention)):
        row = cost.attention[at]
        window = row.window
        is_below = window < 0 or context < window
        row.seen += context if is_below else window
        row.below += is_below


@compiled
def add_chunk(cost: Cost, start: int, length: int) -> None:
    """A chunk of a prompt: query and key pairs under causal attention, over a window."""
    for at in range(len(cost.attention)):
        row = cost.attention[at]
        window = row.window
        growing = length if window < 0 else max(0, min(length, window - start))
        row.pairs += growing * start + growing * (growing + 1) // 2
        row.pairs += (length - growing) * max(window, 0)


@compiled
def linear_s(knots: Array, tokens: int) -> float:
    """Through the weights, of so many new tokens."""
    if tokens <= 0 or len(knots) == 0:
        return 0.0
    if len(knots) == 1 or tokens <= knots[0].tokens:
        return knots[0].seconds
    high = 1
    while high < len(knots) - 1 and knots[high].tokens <= tokens:
        high += 1
    low = high - 1
    rise, run = knots[high].seconds - knots[low].seconds, knots[high].tokens - knots[low].tokens
    return knots[low].seconds + rise * (tokens - knots[low].tokens) / run


@compiled
def step_s(cost: Cost, rules: Array, tokens: int, sequences: int) -> float:
    """Seconds of the step whose load has been added up."""
    if sequences == 0:
        return 0.0
    total = rules[0].fixed_s + rules[0].sequence_s * sequences + linear_s(cost.knots, tokens)
    attention = 0.0
    for at in range(len(cost.attention)):
        row = cost.attention[at]
        attention += row.read_s * row.seen + row.pair_s * row.pairs
    return total + attention
