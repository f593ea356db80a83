"""What clients see of an engine that is estimated: a closed loop, a full queue, one request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
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
    cost: StepCost,
    batching: Batching,
    running: float,
    prompt: float,
    output: float,
    *,
    at_once: bool,
) -> Prompting:
    """What a prompt costs among ``running`` clients; ``at_once`` where prompts come together, as
    many in a step as fit.
    """
    most = max(1.0, min(batching.budget / prompt, running))
    a_step = most if at_once else loop.prompts_a_step(running, output, most)
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
    at_once = batching.apart and not drawn
    cost_of = prompting(cost, batching, running, prompt, output, at_once=at_once)
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


def run_s(requests: Any, running: Any, batch_s: Any) -> Any:
    """What a run of ``requests`` of one length takes, ``running`` at once; numbers or arrays.

    They end together and the next begin together: whole batches one after the other, and a last one
    of those that are left, each of ``batch_s(sequences)``.
    """
    whole = requests // running
    rest = requests - whole * running
    return whole * batch_s(running) + (rest > 0) * batch_s(rest)


def filled_up(batch: float, sizes: Sequence[int]) -> float:
    """The size of the captured graph that a decode step of ``batch`` sequences replays; itself
    where none is as large.
    """
    return next((size for size in sizes if size >= batch), batch)


def full_queue(
    cost: StepCost,
    batching: Batching,
    *,
    prompt: int,
    output: int,
    capacity: int,
    requests: float | None = None,
    sizes: Sequence[int] = (),
) -> Served:
    """All requests are there at once and as many run as fit: the most that one rank serves.

    Nobody waits for a token to be sent, so the clients' own time does not count. ``requests`` is
    how many a run of equal lengths has; without end it never empties. ``sizes`` are those of the
    graphs that steps without prompts are filled up to, rising.
    """
    ends = requests is not None
    many = float(capacity if requests is None else requests)
    running = max(1.0, min(float(capacity), many))
    if ends:  # all ranks of a group have their prompts at the same time
        batching = batching._replace(held_up=1.0)

    def batch_s(batch: float) -> float:
        cost_of = prompting(cost, batching, batch, prompt, output, at_once=ends)
        filled = _linear(cost, filled_up(batch, sizes)) - _linear(cost, batch)
        alone = max(0.0, output - batch / cost_of.a_step)
        step_s = decode_s(cost, batch, prompt, output)
        return float(output * step_s + batch * cost_of.together_s + alone * filled)

    return Served(
        tpot_s=batch_s(running) / output,
        ttft_s=prompt_alone_s(cost, prompt, batching.budget),
        queue_s=0.0,
        tokens_per_s=many * output / run_s(many, running, batch_s),
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
