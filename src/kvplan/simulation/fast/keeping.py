"""What each kind of group keeps for others, compiled: windows' tails, states at boundaries."""

from __future__ import annotations

from kvplan.simulation.fast.compiled import compiled
from kvplan.simulation.fast.hits import key_of
from kvplan.simulation.fast.layout import DENSE, NO, NONE, STATE, WINDOW, YES, Cache
from kvplan.simulation.fast.pool import forget, register, seek


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
    key = key_of(cache, request, tokens, number)
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
            put_key(cache, seat, number, int(row[at]), (at + 1) * group.size)
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
        note_written(cache, put_key(cache, seat, number, int(row[at]), tokens))


@compiled
def register_checkpoint(cache: Cache, seat: int, number: int) -> None:
    """An exported state is kept at the prompt's end, at a segment's and at a junction."""
    group, held, asked = cache.groups[number], cache.held[number, seat], cache.seats[seat]
    position = held.exported
    block = int(cache.table[number, seat, held.exported_block])
    at_end = position == last_boundary(asked.prompt, cache.rules[0].alignment)
    whole = position % group.size == 0
    kept = whole and is_kept(cache, seat, number, position // group.size - 1, NO)
    if not at_end and not kept and position != asked.junction:
        if block != 0 and cache.pool.blocks[block].key != NONE:
            forget(cache.pool, block)
        return
    if block != 0 and cache.pool.blocks[block].tokens != position:
        note_written(cache, put_key(cache, seat, number, block, position))
