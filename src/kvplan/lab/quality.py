"""What a cache does to a model's reading: perplexity of a passage, facts found in it.

    passage     ├── read at once ──┤── scored, a chunk after the other ──┤

A scored token sees its own chunk as it is and everything before it through the cache, as later
tokens of a conversation would. The full cache's figure is the same whatever the chunk.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch

from kvplan.lab.engine import rows_of
from kvplan.lab.figures import Perplexity
from kvplan.lab.loading import Loaded

CHUNK = 32
Make = Callable[[int], Any]  # a cache for so many tokens


def perplexity(
    loaded: Loaded, passages: Sequence[Sequence[int]], make: Make, *, observed: bool = False
) -> Perplexity:
    """How well the second half of each passage is foretold, the first half read at once."""
    losses = []
    for tokens in passages:
        half = len(tokens) // 2
        logits = log_likelihoods(loaded, tokens[:half], tokens[half:], make, observed=observed)
        losses.append(-statistics.fmean(logits))
    return Perplexity(losses=tuple(losses))


def log_likelihoods(
    loaded: Loaded,
    prompt: Sequence[int],
    text: Sequence[int],
    make: Make,
    *,
    observed: bool = False,
    chunk: int = CHUNK,
) -> list[float]:
    """Log-likelihood of each token of a text after a prompt, through a cache."""
    return [row.likelihood for row in read(loaded, prompt, text, make, observed, chunk)]


@dataclass(frozen=True, slots=True)
class Read:
    """A token as the model met it: its log-likelihood, and whether it was the most likely."""

    likelihood: float
    is_first: bool


def read(
    loaded: Loaded,
    prompt: Sequence[int],
    text: Sequence[int],
    make: Make,
    observed: bool = False,
    chunk: int = CHUNK,
) -> list[Read]:
    """Each token of a text after a prompt; None as cache reads all again in one pass."""
    cache = make(len(prompt) + len(text))
    if observed:
        from kvplan.lab.attention import observing
    with observing(loaded.model) if observed else nullcontext():
        if cache is None:
            rows = rows_of(loaded, [*prompt, *text[:-1]], None, len(text))
            return _judged(rows, text)
        found = _judged(rows_of(loaded, prompt, cache, 1), text[:1])
        for start in range(0, len(text) - 1, chunk):
            fed = text[start : min(start + chunk, len(text) - 1)]
            rows = rows_of(loaded, fed, cache, len(fed))
            found += _judged(rows, text[start + 1 : start + 1 + len(fed)])
    return found


def _judged(rows: Any, tokens: Sequence[int]) -> list[Read]:
    wanted = torch.tensor(list(tokens), device=rows.device)
    likelihoods = rows.float().log_softmax(-1).gather(-1, wanted[:, None])[:, 0]
    first = rows.argmax(-1) == wanted
    return [Read(*pair) for pair in zip(likelihoods.tolist(), first.tolist(), strict=True)]
