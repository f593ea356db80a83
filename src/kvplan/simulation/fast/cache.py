"""The hit that all groups can serve, and blocks for a step, compiled: ``paged/cache.py``."""

from __future__ import annotations

from typing import Final

from kvplan.simulation.fast.compiled import compiled
from kvplan.simulation.fast.groups import (
    adopt,
    drop,
    free_table,
    grow,
    needed,
    quiet_steps,
    zero_held,
)
from kvplan.simulation.fast.hits import end_hits, find
from kvplan.simulation.fast.keeping import register_blocks
from kvplan.simulation.fast.layout import FULL, NO, YES, ZERO, Cache

FITS, TOO_LONG, NO_ROOM = range(3)  # now; not as a whole; not this step
SIMPLE: Final = 2  # kinds of groups that one pass settles, if one of them is full attention


@compiled
def lookup(cache: Cache, request: int, known: int) -> tuple[int, int]:
    """What the cache has of a request, in ``hits``: tokens, and where a shared prefix ends."""
    if not cache.rules[0].caching:
        clear(cache)
        return 0, 0
    most = known - 1
    if len(cache.groups) == 1:
        return find(cache, request, ZERO, most), 0
    return reconciled(cache, request, most)


@compiled
def clear(cache: Cache) -> None:
    """No hits."""
    for number in range(len(cache.groups)):
        cache.groups[number].hits = 0


@compiled
def reconciled(cache: Cache, request: int, most: int) -> tuple[int, int]:
    """Every kind of group lowers the length until all can serve it."""
    longest, length, full_length = 0, most, -1
    groups, count = cache.groups, cache.rules[0].num_lookups
    while True:
        current = length
        for at in range(count):
            number = groups[at].lookup
            is_full = groups[number].kind == FULL
            if is_full and full_length >= 0:
                current = min(current, full_length)
                continue
            current = find(cache, request, number, current)
            longest = max(longest, current)
            if is_full:
                full_length = current
        if current >= length:
            break
        length = current
        if count == SIMPLE and groups[groups[0].lookup].kind == FULL:
            break
    for at in range(count):
        number = groups[at].lookup
        group = groups[number]
        if group.kind == FULL:
            end_hits(cache, number, (length + group.size - 1) // group.size)
    return length, longest if longest > length else 0


@compiled
def all_needed(cache: Cache, seat: int, tokens: int, computed: int, cap: int) -> int:
    """Free blocks that the seat takes in all groups."""
    asked = cache.seats[seat]
    end = max(asked.prompt, asked.known - 1) if cache.rules[0].retention == 0 else 0
    total = 0
    for number in range(len(cache.groups)):
        total += needed(cache, seat, number, tokens, computed, cap, end)
    return total


@compiled
def allocate(cache: Cache, seat: int, new: int, hit: int, whole: int, watermark: int) -> int:
    """Blocks for so many new tokens after a hit; nothing is taken if they do not fit."""
    rule, asked, state = cache.rules[0], cache.seats[seat], cache.pool.state[0]
    computed = min(asked.computed + hit, rule.max_model_len)
    if whole:
        tokens = min(asked.known, rule.max_model_len)
        if all_needed(cache, seat, tokens, computed, YES) + watermark > state.free:
            return TOO_LONG
    for number in range(len(cache.groups)):
        drop(cache, seat, number, computed)
    tokens = min(computed + new, rule.max_model_len)
    if all_needed(cache, seat, tokens, computed, NO) + watermark > state.free:
        return NO_ROOM
    for number in range(len(cache.groups)):
        if cache.held[number, seat].length == 0:
            adopt(cache, seat, number, computed)
    for number in range(len(cache.groups)):
        grow(cache, seat, number, tokens)
    if rule.caching:
        register(cache, seat, min(computed + new, asked.known))
    return FITS


@compiled
def register(cache: Cache, seat: int, tokens: int) -> None:
    """Blocks that so many tokens fill can be found; of several groups whole units of all."""
    if len(cache.groups) > 1:
        tokens -= tokens % cache.rules[0].alignment
    for number in range(len(cache.groups)):
        register_blocks(cache, seat, number, tokens)


@compiled
def free_seat(cache: Cache, seat: int) -> None:
    """The request ends or is preempted."""
    for number in range(len(cache.groups)):
        free_table(cache, seat, number)
    zero_held(cache.held, seat)


@compiled
def quiet(cache: Cache, seat: int) -> int:
    """Decoding steps in which a seat's blocks stay as they are."""
    steps = quiet_steps(cache, seat, ZERO)
    for number in range(1, len(cache.groups)):
        steps = min(steps, quiet_steps(cache, seat, number))
    return steps
