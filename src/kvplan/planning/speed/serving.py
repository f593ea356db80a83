"""What clients see of an engine that is estimated: a closed loop, a full queue, one request."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf
from typing import Any

from kvplan.core.step import Chunk, StepCost
from kvplan.planning.speed import loop
from kvplan.planning.speed.batching import Batching
from kvplan.planning.speed.loop import Prompting


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """Seconds and rates as a client sees them.

    ``ttft_s`` is without ``queue_s``, the time that a request waits for a place in the batch;
    ``tokens_per_s`` are the output tokens of all clients together; ``batch`` are the sequences that
    run at once, over all replicas.
    """

    tpot_s: float
    ttft_s: float
    queue_s: float
    tokens_per_s: float
    batch: float


def seen_tokens(prompt: float, output: float, window: int | None) -> float:
    """Context tokens that a decode step sees, on average over the output."""
    first, last = prompt, prompt + output
    if window is None or last <= window:
        return (first + last) / 2
    if first >= window:
        return window
    growing = (window * window - first * first) / 2
    return (growing + window * (last - window)) / output


def decode_s(cost: StepCost, batch: float, prompt: float, output: float) -> float:
    """A decode step of ``batch`` sequences in the middle of their outputs."""
    each = sum(group.read_s * seen_tokens(prompt, output, group.window) for group in cost.attention)
    return cost.fixed_s + _linear(cost, batch) + batch * (cost.sequence_s + each)


def _linear(cost: StepCost, tokens: float) -> float:
    """``StepCost.linear_s`` of a number of tokens that is an average."""
    whole = int(tokens)
    low = cost.linear_s(whole)
    return low + (cost.linear_s(whole + 1) - low) * (tokens - whole)


def prompt_alone_s(cost: StepCost, prompt: int, budget: int) -> float:
    """A prompt that has the engine to itself, in chunks of ``budget`` tokens."""
    chunks = [
        Chunk(start, min(budget, prompt - start)) for start in range(0, max(prompt, 1), budget)
    ]
    return sum(cost.seconds((), (chunk,)) for chunk in chunks)


def _chunk_s(cost: StepCost, running: float, tokens: float, *, apart: bool) -> float:
    """What a step takes longer for so many prompt tokens in it."""
    if apart:
        return cost.fixed_s + _linear(cost, tokens)
    return max(0.0, _linear(cost, running + tokens) - _linear(cost, running))


def prompting(
    cost: StepCost, batching: Batching, running: float, prompt: float, output: float, *, equal: bool
) -> Prompting:
    """What a prompt costs among ``running`` clients."""
    most = max(1.0, min(batching.budget / prompt, running))
    arriving = loop.prompts_a_step(running, output, most)
    a_step = most if batching.apart and equal else arriving
    length = ceil(prompt)
    pairs = (
        sum(group.seconds((), (Chunk(0, length),)) for group in cost.attention) + cost.sequence_s
    )
    chunk = min(a_step * prompt, batching.budget)
    first = min(prompt, batching.budget)
    together = _chunk_s(cost, running, chunk, apart=batching.apart) * prompt / chunk + pairs
    alone = _chunk_s(cost, 0, first, apart=True) * prompt / first + pairs
    return Prompting(together * batching.held_up, alone, a_step)


def closed_loop(
    cost: StepCost,
    batching: Batching,
    *,
    prompt: int,
    output: int,
    clients: float,
    capacity: int,
    drawn: bool = False,
) -> Served:
    """``clients`` of one rank that each send a request, wait for its answer, and send the next.

    ``capacity`` is what runs at once; more clients queue. ``drawn`` lengths vary around the given
    means; equal ones keep clients in step.
    """
    running = max(1.0, min(clients, capacity))
    cost_of = prompting(cost, batching, running, prompt, output, equal=not drawn)
    output = max(output, 2)

    def step_s(batch: float) -> float:
        return decode_s(cost, batch, prompt, output)

    if batching.apart:
        before = batching.drawn_waves if drawn else batching.waves
        seen = loop.apart(running, output, step_s, cost_of, before, float(not drawn))
    else:
        seen = loop.mixed(running, output, step_s, cost_of)
    ttft = seen.ttft_s + batching.way.seconds(prompt)
    cycle = ttft + seen.tpot_s * (output - 1)
    return Served(
        tpot_s=seen.tpot_s,
        ttft_s=ttft,
        queue_s=cycle * max(0.0, clients - running) / running,
        tokens_per_s=running * output / cycle,
        batch=running,
    )


def cycle_s(running: Any, output: Any, step_s: Any, together_s: Any, requests: Any = inf) -> Any:
    """What ``running`` requests take, prompts counted, of a run of ``requests``.

    A run ends with a batch that empties: its last steps cost their fixed part for half of the
    sequences on average, which each of its batches bears a part of. Numbers or arrays.
    """
    batches = requests / running
    empty = output * step_s(0) / 2
    later = 1 - 1 / batches  # 0 of a run that is one batch
    return output * step_s(running) + running * together_s + empty * later / batches


def full_queue(
    cost: StepCost,
    batching: Batching,
    *,
    prompt: int,
    output: int,
    capacity: int,
    requests: float = inf,
) -> Served:
    """All requests are there at once and as many run as fit: the most that one rank serves.

    Nobody waits for a token to be sent, so the clients' own time does not count. ``requests`` is
    how many a run has; without end it never empties.
    """
    running = float(max(1, min(capacity, requests)))
    cost_of = prompting(cost, batching, running, prompt, output, equal=False)

    def step_s(batch: float) -> float:
        return decode_s(cost, batch, prompt, output)

    cycle = cycle_s(running, output, step_s, cost_of.together_s, max(requests, running))
    return Served(
        tpot_s=cycle / output,
        ttft_s=cost_of.alone_s,
        queue_s=0.0,
        tokens_per_s=running * output / cycle,
        batch=running,
    )


def static_batch(cost: StepCost, *, prompt: int, output: int, batch: int) -> Served:
    """A batch whose prompts are all computed first and that decodes to its end (``generate``)."""
    chunks = [Chunk(0, prompt)] * batch
    first = cost.seconds((), chunks)
    step = decode_s(cost, batch, prompt, output)
    return Served(
        tpot_s=step,
        ttft_s=first,
        queue_s=0.0,
        tokens_per_s=batch * output / (first + output * step),
        batch=batch,
    )
