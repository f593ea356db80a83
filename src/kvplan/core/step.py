"""What one step of an engine takes: a sum of kernels, each a curve of the step's shape.

    seconds = fixed_s                                        launches, scheduling, sampling
            + linear(new tokens)                             every new token through the weights
            + Σ read_s × Σ min(context, window)              cache that decoding tokens read
            + Σ pair_s × Σ pairs(start, length, window)      pairs that prefill chunks compute
            + sequence_s × sequences                         states, rows of logits

The same type carries a bound (ideal rates), an estimate (effective rates) and a measured table;
who made it says so in ``source``. Between two steps that differ in lengths alone the cost is linear
in the contexts until a window fills, which is what lets a simulator take many of them together.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Final, NamedTuple


class Knot(NamedTuple):
    """A point of a piecewise-linear curve: ``seconds`` for a step of ``tokens`` new tokens."""

    tokens: int
    seconds: float


class Chunk(NamedTuple):
    """``length`` prompt tokens that a step computes after the ``start`` that are already there."""

    start: int
    length: int


class Way(NamedTuple):
    """What a request needs from its client to the scheduler: ``token_s`` of each prompt token on
    top, as it is cut into tokens.
    """

    fixed_s: float = 0.0
    token_s: float = 0.0

    def seconds(self, prompt: float) -> float:
        """Of a prompt of so many tokens."""
        return self.fixed_s + self.token_s * prompt


AT_ONCE: Final = Way()


def pairs(chunk: Chunk, window: int | None) -> int:
    """Query and key pairs of a chunk under causal attention, over a window where there is one.

    The token at position p sees p + 1 tokens, itself among them, at most ``window``: a chunk of 3
    after 2 has 3 + 4 + 5 = 12 pairs, and with a window of 4 it has 3 + 4 + 4 = 11.
    """
    start, length = chunk
    if window is None or start + length <= window:
        return length * start + length * (length + 1) // 2
    growing = max(0, min(length, window - start))
    return pairs(Chunk(start, growing), None) + (length - growing) * window


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionCost:
    """The layers that look back over one window (None: over everything).

    ``read_s`` is the time of one context token of one decoding sequence in all of these layers,
    ``pair_s`` that of one query and key pair of a prefill.
    """

    window: int | None
    read_s: float
    pair_s: float

    def seconds(self, contexts: Sequence[int], chunks: Sequence[Chunk]) -> float:
        """Of a step that decodes at these contexts and computes these chunks."""
        window = self.window
        seen = sum(contexts) if window is None else sum(min(n, window) for n in contexts)
        return self.read_s * seen + self.pair_s * sum(pairs(chunk, window) for chunk in chunks)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCost:
    """Seconds of a step by its shape.

    ``linear`` are knots by new tokens, rising, the first at 1 token or fewer; past the last the
    last slope goes on. ``source`` says what the rates are: a bound, an estimate, a measurement.
    """

    fixed_s: float
    sequence_s: float
    linear: tuple[Knot, ...]
    attention: tuple[AttentionCost, ...]
    source: str

    def linear_s(self, tokens: int) -> float:
        """Through the weights, of so many new tokens; 0 of none."""
        if tokens <= 0 or not self.linear:
            return 0.0
        if len(self.linear) == 1 or tokens <= self.linear[0].tokens:
            return self.linear[0].seconds
        after = bisect_right(self.linear, (tokens, inf))
        high = min(after, len(self.linear) - 1)
        (x0, y0), (x1, y1) = self.linear[high - 1], self.linear[high]
        return y0 + (y1 - y0) * (tokens - x0) / (x1 - x0)

    def seconds(self, contexts: Sequence[int], chunks: Sequence[Chunk] = ()) -> float:
        """A step that decodes one token at each of ``contexts`` and computes these ``chunks``.

        A context counts the tokens that the new one sees, itself among them.
        """
        if not contexts and not chunks:
            return 0.0
        tokens = len(contexts) + sum(chunk.length for chunk in chunks)
        return (
            self.fixed_s
            + self.sequence_s * (len(contexts) + len(chunks))
            + self.linear_s(tokens)
            + sum(group.seconds(contexts, chunks) for group in self.attention)
        )

    def decode_s(self, batch: int, context: int) -> float:
        """A step of ``batch`` sequences of one context each."""
        if batch < 1:
            return 0.0
        seen = sum(
            group.read_s * (context if group.window is None else min(context, group.window))
            for group in self.attention
        )
        return self.fixed_s + self.linear_s(batch) + batch * (self.sequence_s + seen)
