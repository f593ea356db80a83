"""A server that speaks as vLLM does and keeps blocks of prompts: its counters are the truth."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.measuring.faulty_server import DONE, END, Answering, Faulty, faulty, last, text

BLOCK = 4


@dataclass
class Caching:
    """A cache of ``capacity`` blocks of words, the least recently used lost first."""

    capacity: int = 10_000
    says_usage: bool = True
    step_s: float = 0.0
    per_chunk: int = 1
    template: int = 0  # tokens that chat adds to a prompt
    refuses: tuple[str, ...] = ()  # keys of a body that are an error
    fails: Callable[[int], bool] = lambda _: False
    blocks: OrderedDict[str, None] = field(default_factory=OrderedDict)
    hits: int = 0
    queries: int = 0
    bodies: list[dict[str, Any]] = field(default_factory=list)

    def reused(self, words: list[str], salt: str) -> int:
        """Words whose blocks are there; those of the prompt are there from now on."""
        names = [
            salt + "/" + " ".join(words[: end + BLOCK])
            for end in range(0, len(words) - len(words) % BLOCK, BLOCK)
        ]
        found = 0
        for name in names:
            if name not in self.blocks or (found + 1) * BLOCK >= len(words):
                break
            found += 1
        for name in names:
            self.blocks[name] = None
            self.blocks.move_to_end(name)
        while len(self.blocks) > self.capacity:
            self.blocks.popitem(last=False)
        self.queries += len(words)
        self.hits += found * BLOCK
        return found * BLOCK

    async def answer(self, one: Answering) -> None:
        self.bodies.append(one.body)
        if self.fails(one.number):
            await one.whole("503 Service Unavailable", b"busy")
            return
        if refused := [key for key in self.refuses if key in json.dumps(one.body)]:
            await one.whole("400 Bad Request", f"unknown: {refused}".encode())
            return
        words = _words(one.body)
        words[:0] = ["<template>"] * (self.template if "messages" in one.body else 0)
        cached = self.reused(words, str(one.body.get("cache_salt", "")))
        tokens = one.body["max_tokens"]
        usage = {"prompt_tokens": len(words)}
        if self.says_usage:
            usage["prompt_tokens_details"] = {"cached_tokens": cached}  # type: ignore[assignment]
        pieces = [text("ab" * self.per_chunk) for _ in range(0, tokens, self.per_chunk)]
        await one.stream(*pieces, pause_s=self.step_s)
        await one.stream_on(last(tokens, **usage), DONE)
        await one.say(END)

    def metrics(self, _: object) -> bytes:
        return (
            f'vllm:num_requests_running{{model_name="m"}} 0\n'
            f'vllm:prefix_cache_hits_total{{model_name="m"}} {self.hits}\n'
            f'vllm:prefix_cache_queries_total{{model_name="m"}} {self.queries}\n'
            f'vllm:num_preemptions_total{{model_name="m"}} {len(self.bodies)}\n'
            f'vllm:kv_cache_usage_perc{{model_name="m"}} 0.5\n'
            f'vllm:cache_config_info{{block_size="{BLOCK}",num_gpu_blocks="{self.capacity}"}} 1\n'
        ).encode()


def _words(body: dict[str, Any]) -> list[str]:
    text: str = body["messages"][0]["content"] if "messages" in body else body["prompt"]
    return text.split()


@contextmanager
def caching(server: Caching) -> Iterator[Faulty]:
    """The server while the context lasts."""
    models = {"data": [{"id": "m", "owned_by": "vllm", "root": "org/m", "max_model_len": 4096}]}
    pages: dict[str, Callable[[dict[str, Any]], bytes]] = {
        "/v1/models": lambda _: json.dumps(models).encode(),
        "/version": lambda _: b'{"version": "0.19.0"}',
        "/metrics": server.metrics,
        "/tokenize": lambda b: json.dumps({"tokens": [1] * len(b["prompt"].split())}).encode(),
    }
    with faulty(server.answer, pages) as made:
        yield made
