"""Clients that each wait for their answer: what they see, prefills between decode steps counted.

The engine works all the time, so a client's cycle is the work of all clients' prompts and of its
own decode steps. What part of the others' prompts falls before a client's first token, and what
part between its tokens, depends on the scheduler:

    mixed      prompts ride along with decoding tokens (vLLM since 0.8, TensorRT-LLM)
    apart      steps of prompts go before steps of decoding (SGLang); clients with equal lengths
               then move in waves, and wait for about half of a wave's prompts first

Every function takes numbers or arrays of them, as ``terms`` does.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

ROUNDS: Final = 6  # of substitution; the share of decoding clients settles in three or four


class Prompting(NamedTuple):
    """What prompts cost: ``together_s`` each when as many go in a step as arrive, ``alone_s`` of
    one that has a step to itself, ``a_step`` prompts that go in one.
    """

    together_s: Any
    alone_s: Any
    a_step: Any


class Seen(NamedTuple):
    """What a client sees: seconds to the first token, and between tokens after it."""

    ttft_s: Any
    tpot_s: Any


def prompts_a_step(clients: Any, output: Any, most: Any) -> Any:
    """Prompts that arrive in a decode step: each client brings one in ``output`` steps.

    At least one, as fewer steps have one, and no more than ``most``.
    """
    arriving = clients / output
    at_least = (arriving + 1 + abs(arriving - 1)) / 2
    return (at_least + most - abs(at_least - most)) / 2


def mixed(clients: Any, output: Any, step_s: Any, prompting: Prompting) -> Seen:
    """Prompts ride along. ``step_s(n)`` is a decode step of n sequences."""
    steps = output - 1
    waiting = steps * step_s(clients)
    share: Any = 1.0
    for _ in range(ROUNDS):
        share = waiting / (waiting + prompting.alone_s)
        waiting = steps * step_s(1 + (clients - 1) * share) + (
            (clients - 1) * prompting.together_s * share
        )
    step = step_s(1 + (clients - 1) * share)
    average = step + clients / (steps + 1) * prompting.together_s
    longest = step + prompting.a_step * prompting.together_s
    # It arrives in the middle of a step, and its own step brings the first token.
    half = (average + longest - abs(average - longest)) / 4
    return Seen(half + longest, waiting / steps)


def apart(
    clients: Any, output: Any, step_s: Any, prompting: Prompting, before: Any, equal: Any
) -> Seen:
    """Prompts go first: ``before`` is the part of all prompts that passes before a first token.

    ``equal`` lengths (1, else 0) keep all clients decoding together.
    """
    steps = output - 1
    waiting = steps * step_s(clients)
    others = (clients - 1) * prompting.together_s * (1 - before)
    for _ in range(ROUNDS):
        share = waiting / (waiting + prompting.alone_s)
        decoding = equal * clients + (1 - equal) * (1 + (clients - 1) * share)
        waiting = steps * step_s(decoding) + others
    return Seen(prompting.alone_s + before * clients * prompting.together_s, waiting / steps)
