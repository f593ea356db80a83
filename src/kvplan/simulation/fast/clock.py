"""Virtual time, compiled: what is sent when, step after step, and the course of the engine.

    deliver    those whose time has come are sent, or wait for a place in the closed loop
    step       decided, noted, and over after its seconds; tokens come out of it
    repeat     steps that change nothing but lengths are taken together: until a sequence ends, a
               block is taken, kept or dropped, a window fills, or somebody is due

A repeated step takes the time that it would take alone, added up in the same order: a step-by-step
run gives the same timestamps to the last bit. The order of events is ``simulation/loop.py``'s.
"""

from __future__ import annotations

import numpy as np

from kvplan.simulation.fast.cache import free_seat
from kvplan.simulation.fast.compiled import compiled, entry
from kvplan.simulation.fast.layout import TIMELINE, YES, ZERO, World
from kvplan.simulation.fast.queues import pop_backlog, pop_due, push_backlog, push_due, push_waiting
from kvplan.simulation.fast.scheduler import step
from kvplan.simulation.fast.timing import step_s


@compiled
def next_due(world: World) -> float:
    """When the next request is due; infinite if none is."""
    state, rule = world.cache.pool.state[0], world.cache.rules[0]
    static = np.inf
    if state.sent < rule.num_requests:
        static = world.arrival[world.order[state.sent]]
    return min(static, world.due[0].time) if state.num_due else static


@compiled
def next_request(world: World) -> int:
    """Whoever is due first; what was planned comes before what has become due."""
    state, rule = world.cache.pool.state[0], world.cache.rules[0]
    if state.sent < rule.num_requests:
        request = int(world.order[state.sent])
        if not state.num_due or world.arrival[request] <= world.due[0].time:
            state.sent += 1
            return request
    return pop_due(world)


@compiled
def seen_until(world: World) -> float:
    """Who is due by then is there for the next decision, which may be made a step ahead."""
    state = world.cache.pool.state[0]
    return float(state.began if world.cache.rules[0].ahead else state.now)


@compiled
def deliver(world: World) -> bool:
    """Sends all that the next decision sees; whether somebody waits who did not before."""
    cache, fresh = world.cache, False
    state, rule = cache.pool.state[0], cache.rules[0]
    while next_due(world) <= seen_until(world):
        due = next_due(world)
        request = next_request(world)
        if rule.most_open >= 0 and state.open >= rule.most_open:
            push_backlog(world, request)
            continue
        state.open += 1
        row = cache.requests[request]
        row.arrived = due
        taken = max(due, state.began) if rule.ahead else due
        if row.rejected:
            end(world, request, taken)
        else:
            push_waiting(world, request, row.prompt, YES)
            elapse(world, taken)
            count_waiting(world)
            fresh = True
    return fresh


@compiled
def end(world: World, request: int, now: float) -> None:
    """Its client goes on: the next of the closed loop, and those that waited for it."""
    state, requests = world.cache.pool.state[0], world.cache.requests
    state.open -= 1
    state.ended += 1
    held_back = pop_backlog(world)
    if held_back >= 0:
        push_due(world, held_back, now + way_s(world, held_back))
    follower = np.int64(requests[request].first_follower)
    while follower >= 0:
        push_due(world, follower, now + world.think[follower] + way_s(world, follower))
        follower = np.int64(requests[follower].next_follower)


@compiled
def way_s(world: World, request: int) -> float:
    """``core.step.Way.seconds`` of a request."""
    rule = world.cache.rules[0]
    return float(rule.way_s + rule.way_token_s * world.cache.requests[request].prompt)


@compiled
def elapse(world: World, now: float) -> None:
    """Until now everything was as noted."""
    state = world.cache.pool.state[0]
    lasted = now - state.last_note
    state.used_area += state.used * lasted
    state.running_area += state.running * lasted
    state.waiting_area += state.waiting * lasted
    state.last_note = now


@compiled
def count_waiting(world: World) -> None:
    """So many wait from now on."""
    state = world.cache.pool.state[0]
    state.waiting = state.num_waiting
    state.max_waiting = max(state.max_waiting, state.waiting)


@compiled
def note(world: World) -> None:
    """The state of the engine from now on, and a row of the timeline."""
    state = world.cache.pool.state[0]
    elapse(world, state.now)
    count_waiting(world)
    state.used = world.cache.rules[0].num_blocks - 1 - state.free
    state.running = state.num_running
    state.peak_used = max(state.peak_used, state.used)
    state.max_running = max(state.max_running, state.running)
    sample(world)


@compiled
def sample(world: World) -> None:
    """A row of the timeline; when it is full every other one goes."""
    state, samples = world.cache.pool.state[0], world.samples
    if state.seen % state.every == 0 and state.rows == TIMELINE:
        for at in range(TIMELINE // 2):
            samples[at] = samples[2 * at]
        state.rows = TIMELINE // 2
        state.every *= 2
    if state.seen % state.every == 0:
        row = samples[state.rows]
        row.time, row.used = state.now, state.used
        row.running, row.waiting = state.running, state.waiting
        row.queried, row.hits, row.preemptions = state.queried, state.hits, state.preemptions
        state.rows += 1
    state.seen += 1


@compiled
def settle(world: World) -> None:
    """Tokens come out of sequences whose known tokens are all computed; some are the last."""
    cache, seats = world.cache, world.cache.seats
    state, requests = cache.pool.state[0], cache.requests
    count, left = state.num_running, 0
    for at in range(count):
        seat = seats[at].running
        asked = cache.seats[seat]
        if asked.scheduled and asked.computed >= asked.known:
            asked.known += 1
            if asked.known == asked.prompt + 1 and np.isnan(requests[asked.request].first):
                requests[asked.request].first = state.now
            if asked.known >= asked.end:
                finish(world, seat)
                continue
        seats[left].running = seat
        left += 1
    state.num_running = left


@compiled
def finish(world: World, seat: int) -> None:
    """A request is answered; its place among the running is closed by the caller."""
    cache, state = world.cache, world.cache.pool.state[0]
    request = cache.seats[seat].request
    free_seat(cache, seat)
    cache.seats[state.num_seats].free = seat
    state.num_seats += 1
    cache.requests[request].finished = state.now
    end(world, request, state.now)


@compiled
def repeatable(world: World, tokens: int) -> int:
    """How often the step that was just settled comes again as it was, but for lengths."""
    cache, cost = world.cache, world.cost
    state, rule = cache.pool.state[0], cache.rules[0]
    count = state.num_running
    stuck = state.num_waiting == 0 or count >= rule.max_num_seqs or state.budget <= 0
    if rule.step_by_step or count == 0 or tokens != count or state.gave_way:
        return 0
    if not stuck and not (rule.num_groups == 1 and world.queue[0].request == state.blocked):
        return 0
    most = 1 << 40
    for at in range(count):
        asked = cache.seats[cache.seats[at].running]
        decoded = asked.scheduled == 1 and asked.computed > asked.prompt
        if not decoded or asked.known != asked.computed + 1:
            return 0
        most = min(most, asked.quiet, asked.end - asked.known - 1)
        if most <= 0:
            return 0
        for group in range(len(cost.attention)):
            window = cost.attention[group].window
            if window > asked.computed:
                most = min(most, window - asked.computed)
    return most


@compiled
def repeat(world: World, tokens: int) -> None:
    """The last step again, as often as nothing changes but lengths and nobody is due."""
    cache, cost, state = world.cache, world.cost, world.cache.pool.state[0]
    most = repeatable(world, tokens)
    if most <= 0:
        return
    due, done = next_due(world), 0
    while done < most and seen_until(world) < due:
        done += 1
        state.began = state.now
        for at in range(len(cost.attention)):
            cost.attention[at].seen += cost.attention[at].below
        state.now += step_s(cost, cache.rules, tokens, tokens)
    state.num_steps += done
    state.step += done
    for at in range(state.num_running):
        asked = cache.seats[cache.seats[at].running]
        asked.computed += done
        asked.known += done
        asked.quiet -= done
        recompute = min(cache.requests[asked.request].furthest, asked.computed)
        state.recomputed += max(0, recompute - (asked.computed - done))


@entry
def run(world: World, most_steps: int) -> bool:
    """So many steps, or fewer if nothing is left to do; whether that is so."""
    state, seats, rule = world.cache.pool.state[0], world.cache.seats, world.cache.rules[0]
    for _ in range(most_steps):
        deliver(world)
        if state.num_running == 0 and state.num_waiting == 0:
            note_idle(world)
            if wait(world):
                return True
            continue
        tokens = step(world)
        note(world)
        if tokens == 0 and not state.gave_way:
            if wait(world):  # the first in line can never be admitted
                return True
            continue
        sequences = ZERO
        for at in range(state.num_running):
            sequences += seats[seats[at].running].scheduled > 0
        state.num_steps += tokens > 0
        state.began = state.now
        fresh = rule.ahead and deliver(world)  # for the step after this one
        state.now += step_s(world.cost, world.cache.rules, tokens, sequences)
        settle(world)
        if not fresh:
            repeat(world, tokens)
    return False


@compiled
def wait(world: World) -> bool:
    """Nothing runs until somebody is due; whether nobody ever is."""
    state = world.cache.pool.state[0]
    due = next_due(world)
    state.now = max(state.now, due)
    state.began = state.now
    return bool(due == np.inf)


@compiled
def note_idle(world: World) -> None:
    """Once, when everything has ended."""
    state = world.cache.pool.state[0]
    if state.running or state.waiting or state.used:
        note(world)
