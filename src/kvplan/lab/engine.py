"""A prompt through a model with a cache, token by token, and what that took.

    prompt ─► one pass ─► first token          time to first token, bytes after the prompt
           ─► a pass a token ─► the rest       time between tokens, bytes at the end

Without a cache each pass reads all tokens again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch

from kvplan.core.errors import BadValue
from kvplan.lab.caches.base import Held, held_bytes
from kvplan.lab.loading import Loaded
from kvplan.lab.memory import PeakMemory


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """An answer and what it took; times in seconds, bytes between steps."""

    tokens: tuple[int, ...]
    positions: int
    ttft_s: float
    later_s: tuple[float, ...]
    prefill_held: Held
    held: Held
    peak_bytes: int | None

    @property
    def itl_s(self) -> float | None:
        """The middle one of the times between tokens."""
        ordered = sorted(self.later_s)
        return ordered[len(ordered) // 2] if ordered else None


class Positions:
    """Counts the tokens that pass through a model's embedding."""

    def __init__(self) -> None:
        self.count = 0

    def hook(self, _: Any, inputs: tuple[Any, ...], __: Any) -> None:
        """Called with each pass's tokens."""
        self.count += inputs[0].shape[-1]


@contextmanager
def counting(model: Any) -> Iterator[Positions]:
    """The positions that the model processes as long as the context lasts."""
    positions = Positions()
    handle = model.get_input_embeddings().register_forward_hook(positions.hook)
    try:
        yield positions
    finally:
        handle.remove()


def step(loaded: Loaded, tokens: Sequence[int], cache: Any) -> Any:
    """The logits after so many new tokens; ``(vocabulary,)``."""
    return rows_of(loaded, tokens, cache, 1)[-1]


def rows_of(loaded: Loaded, tokens: Sequence[int], cache: Any, keep: int) -> Any:
    """The logits of the last ``keep`` of these tokens: ``(keep, vocabulary)``.

    Raises:
        BadValue: the model does not run, with what torch said.
    """
    ids = torch.tensor([list(tokens)], device=loaded.device)
    options = {"use_cache": False} if cache is None else {"cache": cache, "use_cache": True}
    try:
        with torch.inference_mode():
            return loaded.model(ids, logits_to_keep=keep, **options).logits[0]
    except RuntimeError as error:
        said = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise BadValue(f"{loaded.name} does not run with this cache: {said[:200]}") from None


def generate(
    loaded: Loaded,
    prompt: Sequence[int],
    cache: Any,
    output: int,
    *,
    observed: bool = False,
) -> Generated:
    """The most likely next token, ``output`` times; the end of a text is no reason to stop.

    ``cache`` may hold the prompt's beginning already (``num_reused`` tokens); None is no cache.
    ``observed`` runs the attention that tells the cache what it asks for.
    """
    if observed:
        from kvplan.lab.attention import observing
    later, tokens = [], list(prompt)
    reused = getattr(cache, "num_reused", 0)
    context = observing(loaded.model) if observed else nullcontext()
    with context, counting(loaded.model) as positions, PeakMemory(loaded.device) as peak:
        started = time.perf_counter()
        tokens.append(int(step(loaded, tokens[reused:], cache).argmax()))
        ttft_s = time.perf_counter() - started
        prefill_held = held_bytes(cache)
        for _ in range(output - 1):
            started = time.perf_counter()
            new = tokens if cache is None else tokens[-1:]
            tokens.append(int(step(loaded, new, cache).argmax()))
            later.append(time.perf_counter() - started)
    return Generated(
        tokens=tuple(tokens[len(prompt) :]),
        positions=positions.count,
        ttft_s=ttft_s,
        later_s=tuple(later),
        prefill_held=prefill_held,
        held=held_bytes(cache),
        peak_bytes=peak.num_bytes,
    )
