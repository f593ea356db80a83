"""Heaps of waiting and of due requests, and the line of a closed loop, compiled."""

from __future__ import annotations

from kvplan.simulation.fast.compiled import compiled
from kvplan.simulation.fast.layout import FCFS, PRIORITY, ZERO, Array, World


@compiled
def ranks_before(queue: Array, one: int, other: int) -> bool:
    """By rank, then order."""
    if queue[one].rank != queue[other].rank:
        return queue[one].rank < queue[other].rank
    return queue[one].order < queue[other].order


@compiled
def swap(queue: Array, one: int, other: int) -> None:
    """Two rows change places."""
    rank, order, request = queue[one].rank, queue[one].order, queue[one].request
    queue[one] = queue[other]
    row = queue[other]
    row.rank, row.order, row.request = rank, order, request


@compiled
def push_waiting(world: World, request: int, known: int, is_back: int) -> None:
    """A request waits: at the end, at the front if it was preempted, or where the policy says."""
    state, rule, queue = world.cache.pool.state[0], world.cache.rules[0], world.queue
    at = state.num_waiting
    state.num_waiting += 1
    row = queue[at]
    row.request = request
    row.rank, row.order = 0, request
    if rule.policy == FCFS:
        state.front, state.back = state.front - (1 - is_back), state.back + is_back
        row.order = state.back if is_back else state.front
    elif rule.policy == PRIORITY:
        row.rank = world.cache.requests[request].priority
    else:
        row.rank = known
    while at > 0 and ranks_before(queue, at, (at - 1) // 2):
        swap(queue, at, (at - 1) // 2)
        at = (at - 1) // 2


@compiled
def pop_waiting(world: World) -> int:
    """The next to be admitted."""
    state, queue = world.cache.pool.state[0], world.queue
    first = queue[0].request
    state.num_waiting -= 1
    size, at = state.num_waiting, ZERO
    queue[0] = queue[size]
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and ranks_before(queue, child + 1, child):
            child += 1
        if not ranks_before(queue, child, at):
            break
        swap(queue, at, child)
        at = child
    return first


@compiled
def is_due_before(due: Array, one: int, other: int) -> bool:
    """By time, then in the order in which they were put there."""
    if due[one].time != due[other].time:
        return due[one].time < due[other].time
    return due[one].serial < due[other].serial


@compiled
def swap_due(due: Array, one: int, other: int) -> None:
    """Two rows change places."""
    time, serial, request = due[one].time, due[one].serial, due[one].request
    due[one] = due[other]
    row = due[other]
    row.time, row.serial, row.request = time, serial, request


@compiled
def push_due(world: World, request: int, time: float) -> None:
    """A request is due at a time."""
    state, due = world.cache.pool.state[0], world.due
    at = state.num_due
    state.num_due += 1
    state.serial += 1
    row = due[at]
    row.time, row.serial, row.request = time, state.serial, request
    while at > 0 and is_due_before(due, at, (at - 1) // 2):
        swap_due(due, at, (at - 1) // 2)
        at = (at - 1) // 2


@compiled
def pop_due(world: World) -> int:
    """The request that is due first."""
    state, due = world.cache.pool.state[0], world.due
    first = due[0].request
    state.num_due -= 1
    size, at = state.num_due, ZERO
    due[0] = due[size]
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and is_due_before(due, child + 1, child):
            child += 1
        if not is_due_before(due, child, at):
            break
        swap_due(due, at, child)
        at = child
    return first


@compiled
def push_backlog(world: World, request: int) -> None:
    """A request waits for a place in the closed loop."""
    state, requests = world.cache.pool.state[0], world.cache.requests
    requests[request].backlog_next = -1
    if state.backlog_first < 0:
        state.backlog_first = request
    else:
        requests[state.backlog_last].backlog_next = request
    state.backlog_last = request


@compiled
def pop_backlog(world: World) -> int:
    """Who has waited for a place longest; -1 if nobody does."""
    state = world.cache.pool.state[0]
    first = state.backlog_first
    if first >= 0:
        state.backlog_first = world.cache.requests[first].backlog_next
    return first
