"""Which requests a step computes, compiled: ``paged/scheduler.py`` over arrays."""

from __future__ import annotations

from kvplan.simulation.fast.cache import FITS, TOO_LONG, allocate, clear, free_seat, lookup, quiet
from kvplan.simulation.fast.compiled import compiled
from kvplan.simulation.fast.groups import zero_held
from kvplan.simulation.fast.keeping import exports_state, last_boundary
from kvplan.simulation.fast.layout import NO, PRIORITY, ZERO, Cache, World
from kvplan.simulation.fast.queues import pop_waiting, push_waiting
from kvplan.simulation.fast.timing import add_chunk, add_context, begin_load


@compiled
def aligned_chunk(cache: Cache, seat: int, start: int, length: int) -> int:
    """A prefill chunk cut where a state must be kept; 0 if the budget does not reach a boundary."""
    rule, asked = cache.rules[0], cache.seats[seat]
    prefill_end = max(asked.prompt, asked.known - 1)
    if start >= prefill_end:
        return length
    size, end = rule.smallest, start + length
    position = last_boundary(prefill_end, rule.alignment)
    exported = (
        rule.state_checkpoint
        and end >= prefill_end
        and exports_state(start, end, position, rule.unit, size)
    )
    most = min(rule.budget, rule.long_limit) if rule.long_limit > 0 else rule.budget
    if end < prefill_end and (end // size * size > start or size <= most):
        end = end // size * size
    junction = start + (asked.junction - start) // size * size
    first = end
    if start % size and not exported:
        first = earlier(start, first, (start // size + 1) * size)
    if not exported:
        first = earlier(start, first, last_boundary(asked.known, size))
    if start < asked.junction < end:
        first = earlier(start, first, junction)
    return max(first - start, 0)


@compiled
def earlier(start: int, end: int, stop: int) -> int:
    """A stop inside a chunk ends it."""
    return stop if start < stop < end else end


@compiled
def step(world: World) -> int:
    """Decides one step; the tokens that it computes."""
    cache = world.cache
    state, rule = cache.pool.state[0], cache.rules[0]
    state.step += 1
    state.budget = rule.budget
    state.gave_way = 0
    alone = state.num_running + state.num_waiting <= 1
    state.long_limit = 0 if alone else rule.long_limit
    for at in range(state.num_running):
        cache.seats[cache.seats[at].running].scheduled = 0
    schedule_running(world)
    if not state.gave_way:
        admit(world)
    return advance(world)


@compiled
def schedule_running(world: World) -> None:
    """Running requests in their order, as far as the budget goes."""
    cache = world.cache
    state, rule = cache.pool.state[0], cache.rules[0]
    at = 0
    while at < state.num_running and state.budget > 0:
        seat = cache.seats[at].running
        asked = cache.seats[seat]
        tokens = limited(world, asked.known - asked.computed)
        tokens = min(tokens, rule.max_model_len - asked.computed - 1)
        if rule.has_states:
            tokens = aligned_chunk(cache, seat, asked.computed, tokens)
        if tokens <= 0:
            at += 1
            continue
        if asked.quiet > 0 and tokens == 1:
            asked.quiet -= 1
        else:
            clear(cache)
            if not make_room(world, seat, tokens):
                return
            if state.gave_way:
                at = place_of(world, seat)
            asked.quiet = -1
        asked.scheduled = tokens
        state.budget -= tokens
        at += 1


@compiled
def place_of(world: World, seat: int) -> int:
    """Where a seat is among the running."""
    seats, at = world.cache.seats, 0
    while seats[at].running != seat:
        at += 1
    return at


@compiled
def limited(world: World, tokens: int) -> int:
    """A step's budget, and a long prefill's share of it."""
    state = world.cache.pool.state[0]
    if 0 < state.long_limit < tokens:
        tokens = state.long_limit
    return min(tokens, state.budget)


@compiled
def make_room(world: World, seat: int, tokens: int) -> bool:
    """Others give way until the seat has its blocks; False if it gave way itself."""
    while allocate(world.cache, seat, tokens, ZERO, NO, ZERO) != FITS:
        victim = victim_of(world)
        preempt(world, victim)
        if victim == seat:
            return False
    return True


@compiled
def victim_of(world: World) -> int:
    """The newest, or the least important of all."""
    cache = world.cache
    state = cache.pool.state[0]
    worst = cache.seats[state.num_running - 1].running
    if cache.rules[0].policy != PRIORITY:
        return worst
    requests = cache.requests
    worst = cache.seats[0].running
    for at in range(1, state.num_running):
        one = cache.seats[cache.seats[at].running].request
        other = cache.seats[worst].request
        if (requests[one].priority, one) > (requests[other].priority, other):
            worst = cache.seats[at].running
    return worst


@compiled
def preempt(world: World, seat: int) -> None:
    """A request gives its blocks back and waits to start again."""
    cache = world.cache
    state, asked = cache.pool.state[0], cache.seats[seat]
    state.budget += asked.scheduled
    asked.scheduled = 0
    remove_running(world, place_of(world, seat))
    free_seat(cache, seat)
    request = asked.request
    row = cache.requests[request]
    row.generated = asked.known - asked.prompt
    row.furthest = max(row.furthest, asked.computed)
    row.preemptions += 1
    state.preemptions += 1
    state.gave_way = 1
    push_waiting(world, request, asked.known, NO)


@compiled
def remove_running(world: World, at: int) -> None:
    """A seat is free again."""
    state, seats = world.cache.pool.state[0], world.cache.seats
    seat = seats[at].running
    for later in range(at, state.num_running - 1):
        seats[later].running = seats[later + 1].running
    state.num_running -= 1
    state.num_seats += 1
    seats[state.num_seats - 1].free = seat


@compiled
def admit(world: World) -> None:
    """Waiting requests, until one does not fit."""
    cache = world.cache
    state, rule = cache.pool.state[0], cache.rules[0]
    while state.budget > 0 and state.num_waiting > 0:
        if state.num_running >= rule.max_num_seqs or is_still_blocked(world):
            break
        seat = cache.seats[state.num_seats - 1].free
        if not admitted(world, seat):
            break
        pop_waiting(world)
        state.num_seats -= 1
        cache.seats[state.num_running].running = seat
        state.num_running += 1


@compiled
def is_still_blocked(world: World) -> bool:
    """The first in line did not fit, and nothing has come that could help it.

    Of one full group: as long as no block is freed and no shared one is registered, the free
    blocks grow fewer and its hits no longer.
    """
    state = world.cache.pool.state[0]
    return (
        world.queue[0].request == state.blocked
        and state.freed == state.blocked_freed
        and state.shared == state.blocked_shared
    )


@compiled
def admitted(world: World, seat: int) -> bool:
    """The first in line has its blocks and its place in this step."""
    cache = world.cache
    state, rule, request = cache.pool.state[0], cache.rules[0], world.queue[0].request
    state.blocked = -1
    sit(world, seat, request)
    asked = cache.seats[seat]
    hit, asked.junction = lookup(cache, request, asked.known)
    tokens = asked.known - hit
    if not rule.chunked and tokens > state.budget:
        return False
    tokens = limited(world, tokens)
    if rule.has_states:
        tokens = aligned_chunk(cache, seat, hit, tokens)
    if tokens == 0:
        return False
    watermark = rule.watermark if state.num_running else ZERO
    fits = allocate(cache, seat, tokens, hit, rule.reserve, watermark)
    if fits != FITS:
        note_blocked(world, request, fits)
        return False
    row = cache.requests[request]
    if row.preemptions == 0:
        row.hit, row.admitted = hit, state.now
        state.queried += asked.prompt
        state.hits += hit
    asked.computed, asked.scheduled, asked.quiet = hit, tokens, -1
    state.budget -= tokens
    return True


@compiled
def sit(world: World, seat: int, request: int) -> None:
    """A seat is a request's."""
    cache = world.cache
    asked, row = cache.seats[seat], cache.requests[request]
    asked.request, asked.prompt, asked.computed = request, row.prompt, 0
    asked.known = row.prompt + row.generated
    asked.end = min(row.prompt + row.output, cache.rules[0].max_model_len)
    zero_held(cache.held, seat)


@compiled
def note_blocked(world: World, request: int, fits: int) -> None:
    """Remembers who does not fit as a whole, where that cannot change by itself."""
    state, rule = world.cache.pool.state[0], world.cache.rules[0]
    if fits == TOO_LONG and rule.num_groups == 1 and not rule.has_states and not rule.watermark:
        state.blocked = request
        state.blocked_freed, state.blocked_shared = state.freed, state.shared


@compiled
def advance(world: World) -> int:
    """What is scheduled counts as computed; the step's load by kernel, and its tokens."""
    cache, requests = world.cache, world.cache.requests
    state, total = cache.pool.state[0], 0
    begin_load(world.cost)
    for at in range(state.num_running):
        asked = cache.seats[cache.seats[at].running]
        tokens, start = asked.scheduled, asked.computed
        if tokens == 0:
            continue
        total += tokens
        asked.computed = start + tokens
        if start < requests[asked.request].furthest:
            state.recomputed += min(requests[asked.request].furthest, asked.computed) - start
        if tokens == 1 and start >= asked.prompt:
            add_context(world.cost, start + 1)
        else:
            add_chunk(world.cost, start, tokens)
            state.computed += tokens
        if asked.quiet < 0:
            done = asked.computed >= asked.known
            asked.quiet = quiet(cache, cache.seats[at].running) if done else 0
    return total
