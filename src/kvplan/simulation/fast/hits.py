"""What each kind of group has of a request, compiled: the lookups of ``paged/groups.py`` and
``paged/states.py``. A kind is a number here: compiled code has no methods to choose.
"""

from __future__ import annotations

from kvplan.simulation.fast.compiled import compiled
from kvplan.simulation.fast.layout import CHUNKED, FULL, STATE, WINDOW, ZERO, Array, Cache
from kvplan.simulation.fast.pool import find_block

OWN_BITS = 20  # blocks of one request


@compiled
def key_of(cache: Cache, request: int, tokens: int, group: int) -> int:
    """What the first ``tokens`` of a request are found by in a group.

    Named tokens by the id of the last one and its place in it; others by the request itself,
    below zero, where nobody else finds them.
    """
    rule, asked = cache.rules[0], cache.requests[request]
    if tokens > asked.named:
        own = ((request << OWN_BITS) + tokens // rule.unit) * rule.unit
        return -2 - (own * rule.num_groups + group)
    place = (tokens - 1) // rule.hash_block
    name = cache.ids[cache.starts[asked.source] + place]
    within = tokens - 1 - place * rule.hash_block
    return (name * rule.hash_block + within) * rule.num_groups + group


@compiled
def num_skipped(group: Array, tokens: int) -> int:
    """Tokens at the start that the next one does not look at."""
    if group.kind == WINDOW:
        return max(0, tokens - group.window + 1)
    if group.kind == CHUNKED:
        return tokens // group.window * group.window
    return tokens - 1 if group.kind == STATE else 0


@compiled
def found(cache: Cache, request: int, number: int, at: int) -> bool:
    """Notes the block that ends at a place in every group alike; False unless all have one."""
    groups = cache.groups
    tokens = (at + 1) * groups[number].size
    for other in range(len(groups)):
        if groups[other].bucket == groups[number].bucket:
            key = key_of(cache, request, tokens, other)
            block = find_block(cache.pool, key)
            if block == 0:
                return False
            cache.scratch[other] = block
    return True


@compiled
def note_hit(cache: Cache, number: int, at: int) -> None:
    """The blocks just found are hits."""
    groups = cache.groups
    for other in range(len(groups)):
        if groups[other].bucket == groups[number].bucket:
            cache.hits[other, at] = cache.scratch[other]


@compiled
def end_hits(cache: Cache, number: int, count: int) -> int:
    """So many blocks are the hit; their tokens."""
    groups = cache.groups
    for other in range(len(groups)):
        if groups[other].bucket == groups[number].bucket:
            groups[other].hits = count
    return count * groups[number].size


@compiled
def clear_hits(cache: Cache, number: int, end: int) -> None:
    """Null blocks up to a place."""
    groups = cache.groups
    for other in range(len(groups)):
        if groups[other].bucket == groups[number].bucket:
            cache.hits[other, :end] = 0


@compiled
def find(cache: Cache, request: int, number: int, most: int) -> int:
    """The longest hit of at most so many tokens, in ``hits``; its tokens."""
    kind = cache.groups[number].kind
    if kind == WINDOW:
        return find_window(cache, request, number, most)
    if kind == STATE:
        return find_state(cache, request, number, most)
    group = cache.groups[number]
    start = num_skipped(group, most) // group.size if kind == CHUNKED else ZERO
    clear_hits(cache, number, start)
    count = start
    while count < most // group.size and found(cache, request, number, count):
        note_hit(cache, number, count)
        count += 1
    if kind == FULL:
        alignment = cache.rules[0].alignment
        count = count * group.size // alignment * alignment // group.size
    return end_hits(cache, number, count)


@compiled
def find_window(cache: Cache, request: int, number: int, most: int) -> int:
    """The last run as long as the window's tail; a shorter one only from the start."""
    group, alignment = cache.groups[number], cache.rules[0].alignment
    clear_hits(cache, number, most // group.size)
    run = ZERO
    for at in range(most // group.size - 1, -1, -1):
        if not found(cache, request, number, at):
            run = ZERO
            continue
        if run == 0 and (at + 1) * group.size % alignment:
            continue
        note_hit(cache, number, at)
        run += 1
        if run >= group.tail:
            return end_hits(cache, number, at + run)
    while run * group.size % alignment:
        run -= 1
    return end_hits(cache, number, run)


@compiled
def find_state(cache: Cache, request: int, number: int, most: int) -> int:
    """The last boundary whose state is kept."""
    group = cache.groups[number]
    for at in range(most // group.size - 1, -1, -1):
        aligned = (at + 1) * group.size % cache.rules[0].alignment == 0
        if aligned and found(cache, request, number, at):
            clear_hits(cache, number, at)
            note_hit(cache, number, at)
            return end_hits(cache, number, at + 1)
    return end_hits(cache, number, ZERO)


@compiled
def count_idle(cache: Cache, number: int, start: int) -> int:
    """Hits from a place on that nobody holds."""
    idle = 0
    for at in range(max(0, start), cache.groups[number].hits):
        block = cache.hits[number, at]
        if block != 0 and cache.pool.blocks[block].holders == 0:
            idle += 1
    return idle
