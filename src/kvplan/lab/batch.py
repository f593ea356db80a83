"""Requests with one system prompt through one pool of pages, beside the simulator's figures.

    step 1       each prompt in turn: what the pool has of it is held, the rest is computed
    step 2, …    a token of each that has not ended

Every step notes the tokens it computed, its requests and the blocks that were free: the same three
that ``kvplan simulate --replay`` prints of the same requests.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kvplan.core.units import ceil_div
from kvplan.lab.caches.base import KeptLayer, layers_of
from kvplan.lab.caches.paged import PagedCache, Pages
from kvplan.lab.engine import step
from kvplan.lab.loading import Loaded
from kvplan.simulation.replay import Replayed, replay

Step = tuple[int, int, int]  # tokens computed, requests, free blocks


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Requests: a shared beginning, each one's own end, tokens to answer with."""

    shared: tuple[int, ...]
    own: tuple[tuple[int, ...], ...]
    output: int

    def prompt(self, number: int) -> tuple[int, ...]:
        """The whole prompt of a request."""
        return (*self.shared, *self.own[number])

    def num_blocks(self, block_size: int) -> int:
        """Blocks of a pool in which all fit though nothing is shared, and the null block."""
        longest = [len(self.shared) + len(own) + self.output for own in self.own]
        return sum(ceil_div(tokens, block_size) for tokens in longest) + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What became of a batch: an answer and the reused tokens of each, and every step."""

    answers: tuple[tuple[int, ...], ...]
    reused: tuple[int, ...]
    steps: tuple[Step, ...]
    first_s: float
    peak_blocks: int
    block_size: int
    num_blocks: int

    @property
    def computed(self) -> int:
        """Tokens computed in all."""
        return sum(tokens for tokens, _, _ in self.steps)


class _Running:
    """One request on its way."""

    def __init__(self, pages: Pages, prompt: Sequence[int], reuse: bool) -> None:
        self.tokens = list(prompt)
        self.num_prompt = len(prompt)
        self.cache = PagedCache(pages, prompt if reuse else ())

    def advance(self, loaded: Loaded) -> int:
        """One more token; how many were computed for it."""
        new = self.tokens[self.cache.get_seq_length() :]
        logits = step(loaded, new, self.cache)
        self.cache.register(self.tokens)
        self.tokens.append(int(logits.argmax()))
        return len(new)

    @property
    def answer(self) -> tuple[int, ...]:
        """What came out so far."""
        return tuple(self.tokens[self.num_prompt :])


def serve(loaded: Loaded, asked: Asked, *, block_size: int = 16, reuse: bool = True) -> Served:
    """All requests at once through one pool, beginnings shared or not."""
    num_layers = len(layers_of(loaded.config, KeptLayer))
    pages = Pages(num_layers, asked.num_blocks(block_size), block_size)
    running: list[_Running] = []
    steps: list[Step] = []
    started = time.perf_counter()
    first_s = 0.0
    for place in range(asked.output):
        computed = 0
        for number in range(len(asked.own)):
            if place == 0:
                running.append(_Running(pages, asked.prompt(number), reuse))
            computed += running[number].advance(loaded)
        steps.append((computed, len(running), pages.pool.num_free))
        first_s = first_s or time.perf_counter() - started
    for request in running:
        request.cache.close()
    pages.pool.check_integrity([])
    return Served(
        answers=tuple(request.answer for request in running),
        reused=tuple(request.cache.num_reused for request in running),
        steps=tuple(steps),
        first_s=first_s,
        peak_blocks=pages.pool.num_blocks - 1 - min(free for _, _, free in steps),
        block_size=block_size,
        num_blocks=pages.pool.num_blocks,
    )


def simulated(asked: Asked, served: Served, *, reuse: bool = True) -> Replayed:
    """The same requests through the simulator's scheduler."""
    prompts = [len(asked.prompt(number)) for number in range(len(asked.own))]
    return replay(scenario(asked, served.num_blocks, served.block_size, max(prompts), reuse))


def scenario(
    asked: Asked, num_blocks: int, block_size: int, longest: int, reuse: bool
) -> dict[str, Any]:
    """The requests as ``kvplan simulate --replay`` takes them; one step computes every prompt."""
    return {
        "id": "a shared system prompt",
        "settings": {
            "block_size": block_size,
            "num_blocks": num_blocks,
            "max_num_seqs": len(asked.own),
            "max_num_batched_tokens": longest * len(asked.own),
            "max_model_len": longest + asked.output + 1,
            "enable_prefix_caching": reuse,
        },
        "requests": [
            {
                "arrival_step": 0,
                "prompt": [["shared", 0, len(asked.shared)], [f"own{number}", 0, len(own)]],
                "output_tokens": asked.output,
            }
            for number, own in enumerate(asked.own)
        ],
    }
