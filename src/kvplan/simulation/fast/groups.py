"""What each kind of group takes, holds and drops, compiled: ``paged/groups.py`` and
``paged/states.py`` over arrays.
"""

from __future__ import annotations

from kvplan.simulation.fast.compiled import compiled
from kvplan.simulation.fast.hits import count_idle, num_skipped
from kvplan.simulation.fast.keeping import exports_state, last_boundary
from kvplan.simulation.fast.layout import (
    CHUNKED,
    FULL,
    NONE,
    ONE,
    STATE,
    WINDOW,
    ZERO,
    Array,
    Cache,
    Words,
)
from kvplan.simulation.fast.pool import release, seek, take, touch


@compiled
def needed(
    cache: Cache, seat: int, number: int, tokens: int, computed: int, cap: int, prefill_end: int
) -> int:
    """Free blocks that the seat takes to have so many tokens, idle hits among them."""
    group, length = cache.groups[number], cache.held[number, seat].length
    hits = group.hits
    required = (tokens + group.size - 1) // group.size
    if group.kind == STATE:
        return needed_states(cache, seat, number, tokens, computed, cap, prefill_end)
    if cap and group.cap > 0:
        required = min(required, group.cap)
    skipped = num_skipped(group, computed) // group.size
    new = max(required - max(skipped, hits + length), 0)
    return new + count_idle(cache, number, skipped - length)


@compiled
def needed_states(
    cache: Cache, seat: int, number: int, tokens: int, computed: int, cap: int, prefill_end: int
) -> int:
    """One a step, one more for an exported state; impossible if the hit is not written yet."""
    group, held, hits = cache.groups[number], cache.held[number, seat], cache.groups[number].hits
    if hits > 0:
        last = cache.pool.blocks[cache.hits[number, hits - 1]]
        if last.key != NONE:
            row = cache.pool.index[seek(cache.pool, last.key)]
            if row.written == cache.pool.state[0].step:
                return cache.rules[0].num_blocks + 1
    exported = checkpoint_of(cache, seat, number, computed, tokens, prefill_end)
    if not cap:
        held.exported = exported
        held.exported_block = (tokens + group.size - 1) // group.size - 2
    new = (tokens + group.size - 1) // group.size - hits - held.length
    return min(new, 1 + (exported > 0)) + count_idle(cache, number, ZERO)


@compiled
def checkpoint_of(
    cache: Cache, seat: int, number: int, start: int, end: int, prefill_end: int
) -> int:
    """Tokens at whose end the last chunk of a prefill exports a state; 0 if it does not."""
    group, held, rule = cache.groups[number], cache.held[number, seat], cache.rules[0]
    if not group.checkpoint:
        return 0
    at = (end + group.size - 1) // group.size - 2
    position = last_boundary(end, rule.alignment)
    possible = (
        position > 0
        and end >= prefill_end
        and exports_state(start, end, position, rule.unit, group.size)
        and at >= 0
        and (at >= held.length or cache.table[number, seat, at] == 0)
    )
    return position if possible else 0


@compiled
def adopt(cache: Cache, seat: int, number: int, tokens: int) -> None:
    """A seat that holds nothing yet takes its hits, those that it will look at."""
    group, held = cache.groups[number], cache.held[number, seat]
    skipped = max(0, num_skipped(group, tokens) // group.size)
    length = max(skipped, group.hits)
    row = cache.table[number, seat]
    row[:skipped] = 0
    for at in range(skipped, length):
        row[at] = cache.hits[number, at]
        touch(cache.pool, int(row[at]))
    held.length = held.registered = length


@compiled
def grow(cache: Cache, seat: int, number: int, tokens: int) -> None:
    """Blocks for so many tokens in all."""
    group, held = cache.groups[number], cache.held[number, seat]
    required = (tokens + group.size - 1) // group.size
    row = cache.table[number, seat]
    if group.kind == STATE:
        exported = held.exported > 0
        if required > held.length or exported:
            if held.length:
                held.last_state = held.length - 1
            for at in range(held.length, required - 1 - exported):
                row[at] = 0
                held.length = at + 1
    for at in range(held.length, required):
        row[at] = take(cache.pool)
    held.length = max(held.length, required)


@compiled
def drop(cache: Cache, seat: int, number: int, processed: int) -> None:
    """Give back what the next token does not look at; the latest blocks are freed first."""
    group, held = cache.groups[number], cache.held[number, seat]
    if group.kind == FULL:
        return
    row = cache.table[number, seat]
    end = min(num_skipped(group, processed) // group.size, held.length)
    count = ZERO
    for at in range(end - 1, held.retired - 1, -1):
        if row[at] != 0:
            cache.scratch[count] = row[at]
            row[at] = 0
            count += 1
    release(cache.pool, cache.scratch, count, cache.rules[0].keyless_first)
    held.retired = max(held.retired, end)
    if group.kind == STATE and held.last_state >= 0:
        drop_last_state(cache, seat, number, processed)


@compiled
def drop_last_state(cache: Cache, seat: int, number: int, processed: int) -> None:
    """The state before the running one, once the next has been written."""
    group, held = cache.groups[number], cache.held[number, seat]
    row, at = cache.table[number, seat], held.last_state
    if at < (processed + group.size - 1) // group.size - 1 and row[at] != 0:
        cache.scratch[0] = row[at]
        row[at] = 0
        release(cache.pool, cache.scratch, ONE, cache.rules[0].keyless_first)


@compiled
def free_table(cache: Cache, seat: int, number: int) -> None:
    """Everything that a seat holds in a group, its last block first."""
    held, row = cache.held[number, seat], cache.table[number, seat]
    count = held.length
    reverse(row, count, cache.scratch)
    release(cache.pool, cache.scratch, count, cache.rules[0].keyless_first)


@compiled
def reverse(row: Words, count: int, into: Words) -> None:
    """The first ``count`` of a row, the last first."""
    for at in range(count):
        into[at] = row[count - 1 - at]


@compiled
def quiet_steps(cache: Cache, seat: int, number: int) -> int:
    """Decoding steps that neither take, keep nor drop a block in a group."""
    group, held, asked = cache.groups[number], cache.held[number, seat], cache.seats[seat]
    computed = asked.computed
    steps = held.length * group.size - computed
    if cache.rules[0].caching:
        steps = min(steps, (held.registered + 1) * group.size - 1 - computed)
    if group.kind == WINDOW:
        steps = min(steps, (held.retired + 1) * group.size + group.window - 1 - computed)
    if group.kind == CHUNKED:
        steps = min(steps, (computed // group.window + 1) * group.window - computed)
        if num_skipped(group, computed) // group.size > held.retired:
            return 0
    if group.kind == STATE:
        steps = min(steps, (held.retired + 1) * group.size + 1 - computed)
        pending = held.last_state >= 0 and cache.table[number, seat, held.last_state] != 0
        at_end = last_boundary(asked.prompt, cache.rules[0].unit) // group.size - 1
        if pending or (at_end >= 0 and cache.table[number, seat, at_end] != 0):
            return 0
    return max(0, steps)


@compiled
def zero_held(held: Array, seat: int) -> None:
    """A seat holds nothing."""
    for number in range(len(held)):
        row = held[number, seat]
        row.length = row.registered = row.retired = row.exported = row.exported_block = 0
        row.last_state = -1
