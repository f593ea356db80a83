"""What each kind of group looks up, takes, keeps and drops, compiled: ``paged/groups.py`` and
``paged/states.py`` over arrays. A kind is a number here: compiled code has no methods to choose.
"""

from __future__ import annotations

import numpy as np

from kvplan.simulation.fast.compiled import compiled
from kvplan.simulation.fast.layout import (
    CHUNKED,
    DENSE,
    FULL,
    NO,
    NONE,
    ONE,
    STATE,
    WINDOW,
    YES,
    ZERO,
    Array,
    Cache,
    Names,
    Words,
)
from kvplan.simulation.fast.pool import find_block, forget, register, release, seek, take, touch


@compiled
def key_of(names: Names, rules: Array, request: int, tokens: int, group: int) -> int:
    """What the first ``tokens`` of a request are found by in a group.

    Named tokens by the id of the last one and its place in it; others by the request itself,
    below zero, where nobody else finds them.
    """
    rule = rules[0]
    if tokens > names.named[request]:
        own = (request << 26) + tokens // rule.unit
        return -2 - (own * rule.num_groups + group)
    place = (tokens - 1) // rule.hash_block
    name = names.ids[names.starts[names.source[request]] + place]
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
            key = key_of(cache.names, cache.rules, request, tokens, other)
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
            cache.num_hits[other] = count
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
    for at in range(max(0, start), cache.num_hits[number]):
        block = cache.hits[number, at]
        if block != 0 and cache.pool.blocks[block].holders == 0:
            idle += 1
    return idle


@compiled
def needed(
    cache: Cache, seat: int, number: int, tokens: int, computed: int, cap: int, prefill_end: int
) -> int:
    """Free blocks that the seat takes to have so many tokens, idle hits among them."""
    group, length = cache.groups[number], cache.held[number, seat].length
    hits = cache.num_hits[number]
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
    group, held, hits = cache.groups[number], cache.held[number, seat], cache.num_hits[number]
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
def last_boundary(tokens: int, size: int) -> int:
    """The last block boundary that leaves a token to compute."""
    return max((tokens - 1) // size * size, 0)


@compiled
def exports_state(start: int, end: int, position: int, unit: int, size: int) -> bool:
    """Whether a chunk can write the state at a position that it passes."""
    before = (start - 1) // size
    crossed = (end + size - 1) // size - 2 > before
    return start % unit == 0 and crossed and start + unit <= position < end


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
    length = max(skipped, cache.num_hits[number])
    row = cache.table[number, seat]
    row[:skipped] = 0
    for at in range(skipped, length):
        row[at] = cache.hits[number, at]
        touch(cache.pool, np.int64(row[at]))
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
def is_kept(cache: Cache, seat: int, number: int, at: int, at_boundaries: int) -> bool:
    """Whether a block can serve a hit, and so is registered."""
    group, rule = cache.groups[number], cache.rules[0]
    if group.kind not in (WINDOW, STATE):
        return True
    if group.kind == STATE and rule.retention == DENSE:
        return True
    tail = group.tail if group.kind == WINDOW else 1
    segment = rule.alignment if rule.retention == DENSE else rule.retention
    blocks = segment // group.size
    if segment and (tail >= blocks or at % blocks >= blocks - tail):
        return True
    if rule.retention == DENSE or not at_boundaries:
        return False
    asked = cache.seats[seat]
    last = (asked.prompt - 1) // rule.alignment * rule.alignment // group.size
    if last - tail <= at < last:
        return True
    last = asked.junction // rule.alignment * rule.alignment // group.size
    return asked.junction > 0 and last - tail <= at < last


@compiled
def put_key(cache: Cache, seat: int, number: int, block: int, tokens: int) -> int:
    """The block is found by what the seat's first tokens are; the key."""
    request = cache.seats[seat].request
    key = key_of(cache.names, cache.rules, request, tokens, number)
    if cache.pool.blocks[block].key != key:
        if cache.pool.blocks[block].key != NONE:
            forget(cache.pool, block)
        register(cache.pool, block, key, tokens)
    return key


@compiled
def note_written(cache: Cache, key: int) -> None:
    """A state that this step writes: no hit before it has run."""
    cache.pool.index[seek(cache.pool, key)].written = cache.pool.state[0].step


@compiled
def register_blocks(cache: Cache, seat: int, number: int, tokens: int) -> None:
    """Full blocks of so many tokens can be found from now on."""
    group, held = cache.groups[number], cache.held[number, seat]
    row, end = cache.table[number, seat], tokens // group.size
    before = held.registered
    for at in range(before, end):
        if row[at] != 0 and is_kept(cache, seat, number, at, YES):
            put_key(cache, seat, number, np.int64(row[at]), (at + 1) * group.size)
    held.registered = max(before, end)
    if group.kind != STATE:
        return
    register_end(cache, seat, number, tokens)
    for at in range(before, held.registered):
        if row[at] != 0 and cache.pool.blocks[row[at]].key != NONE:
            note_written(cache, cache.pool.blocks[row[at]].key)


@compiled
def register_end(cache: Cache, seat: int, number: int, tokens: int) -> None:
    """The state at the prompt's end: in a block of its own, or exported on the way."""
    group, held, rule = cache.groups[number], cache.held[number, seat], cache.rules[0]
    row, asked = cache.table[number, seat], cache.seats[seat]
    if held.exported > 0:
        register_checkpoint(cache, seat, number)
        return
    if tokens <= 0 or tokens % rule.unit or tokens != last_boundary(asked.prompt, rule.unit):
        return
    at = (tokens + group.size - 1) // group.size - 1
    if at < held.length and row[at] != 0:
        note_written(cache, put_key(cache, seat, number, np.int64(row[at]), tokens))


@compiled
def register_checkpoint(cache: Cache, seat: int, number: int) -> None:
    """An exported state is kept at the prompt's end, at a segment's and at a junction."""
    group, held, asked = cache.groups[number], cache.held[number, seat], cache.seats[seat]
    position = held.exported
    block = np.int64(cache.table[number, seat, held.exported_block])
    at_end = position == last_boundary(asked.prompt, cache.rules[0].alignment)
    whole = position % group.size == 0
    kept = whole and is_kept(cache, seat, number, position // group.size - 1, NO)
    if not at_end and not kept and position != asked.junction:
        if block != 0 and cache.pool.blocks[block].key != NONE:
            forget(cache.pool, block)
        return
    if block != 0 and cache.pool.blocks[block].tokens != position:
        note_written(cache, put_key(cache, seat, number, block, position))


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
