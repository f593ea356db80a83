"""Causes that one engine alone has, in words with their arithmetic."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from kvplan.core.units import format_gib
from kvplan.logs.facts import Start, Value
from kvplan.logs.pool import fraction_leaves

Numbers = Mapping[str, Value]


def sglang_budget(start: Start, numbers: Numbers) -> str:
    """SGLang: the pool is what is free after the weights, less the part that is kept free."""
    before, after = _least(start, "free_before_load_bytes"), _least(start, "free_after_load_bytes")
    share, left = start.number("mem_fraction_static"), fraction_leaves(start)
    if not before or after is None or share is None or left is None:
        return _profiled(numbers)
    viable = math.ceil(1000 * (1 - after / before)) / 1000
    return (
        f"Nothing is left for the cache: {format_gib(after)} are free after the weights, and "
        f"{share:g} keeps {format_gib(after - left)} of {format_gib(before)} free: "
        f"{format_gib(left)}. A fraction below {viable:g} leaves nothing; what is kept free is for "
        "activations and graphs."
    )


def _profiled(numbers: Numbers) -> str:
    tokens = numbers.get("profiled_kv_tokens")
    if not isinstance(tokens, int):
        return ""
    return (
        f"The pool is profiled at {tokens:,} tokens: the weights and what the fraction keeps free "
        "are more than the card has."
    )


def graphs_failed(start: Start, numbers: Numbers) -> str:
    """SGLang: graphs are captured from what the fraction keeps free."""
    free = start.number("free_after_pool_bytes")
    left = f" {format_gib(int(free))} were free for them." if free else ""
    return f"The graphs could not be captured.{left} The pool itself was made."


def capped_by_states(start: Start) -> Iterator[tuple[str, Numbers]]:
    """SGLang: requests that run are limited by slots of recurrent states, not by tokens."""
    slots, each = start.number("state_slots"), start.number("state_slots_per_request")
    most = start.number("max_running_requests")
    if slots and each and most:
        numbers = {"state_slots": int(slots), "state_slots_per_request": int(each)}
        said = (
            f"At most {int(most):,} requests run at once: {int(slots):,} slots of recurrent "
            f"states / {int(each)} a request. More cache tokens do not help; a larger "
            "--mamba-full-memory-ratio or --max-mamba-cache-size does."
        )
        yield said, {**numbers, "max_running_requests": int(most)}


def cut_window(start: Start) -> Iterator[tuple[str, Numbers]]:
    """TensorRT-LLM: a pool smaller than the window cuts the longest request.

    The trial pool prints it too: what holds is the pool that is made last.
    """
    asked, tokens = start.number("asked_window_tokens"), start.number("kv_tokens")
    if asked and tokens and tokens < asked:
        said = (
            f"The longest request is cut to the pool: {int(asked):,} tokens are asked for and "
            f"{int(tokens):,} fit."
        )
        yield said, {"asked_window_tokens": int(asked), "kv_tokens": int(tokens)}


def _least(start: Start, name: str) -> int | None:
    fact = start.least(name)
    return fact.value if fact is not None and isinstance(fact.value, int) else None
