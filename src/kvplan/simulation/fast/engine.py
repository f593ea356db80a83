"""Runs traffic through the compiled engine: arrays in, an ``Outcome`` out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from kvplan.core.errors import BadQuestion
from kvplan.core.step import StepCost
from kvplan.core.units import ceil_div
from kvplan.simulation.blocks import BlockPool
from kvplan.simulation.fast import clock, layout
from kvplan.simulation.fast.hits import OWN_BITS
from kvplan.simulation.fast.names import dense, name
from kvplan.simulation.outcome import Outcome, Timeline
from kvplan.simulation.paged.cache import make_groups, most_blocks
from kvplan.simulation.paged.groups import WindowGroup
from kvplan.simulation.paged.settings import PagedSettings
from kvplan.simulation.traffic import Traffic

CHUNK: Final = 20_000  # steps between two reports of progress
KINDS: Final = ("full", "window", "chunked", "state")
POLICIES: Final = ("fcfs", "priority", "shortest")


def simulate(
    traffic: Traffic,
    settings: PagedSettings,
    cost: StepCost,
    *,
    ahead: bool = False,
    step_by_step: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Outcome:
    """What becomes of the traffic on one copy of the engine.

    ``ahead`` decides each step as the one before it begins; ``step_by_step`` takes no two steps
    together, and gives the same times.

    Raises:
        BadQuestion: preemption by swapping, which the compiled engine does not have.
    """
    if settings.preemption != "recompute":
        raise BadQuestion("The compiled engine preempts by recomputing alone.")
    world = _world(traffic, settings, cost, step_by_step=step_by_step)
    world.cache.rules[0]["ahead"] = ahead
    while not clock.run(world, CHUNK):
        if progress is not None:
            progress(int(world.cache.pool.state[0]["ended"]))
    return _outcome(world)


def _world(
    traffic: Traffic, settings: PagedSettings, cost: StepCost, *, step_by_step: bool
) -> layout.World:
    requests = _requests(traffic, _rejected(traffic, settings))
    starts = np.flatnonzero(traffic.after < 0)
    order = np.argsort(traffic.arrival_s[starts], kind="stable")
    waiting_for_none: layout.Words = starts[order].astype(np.int32)
    cache = _cache(traffic, settings, requests)
    rule, size = cache.rules[0], len(traffic)
    rule["step_by_step"], rule["num_requests"] = step_by_step, len(starts)
    rule["fixed_s"], rule["sequence_s"] = cost.fixed_s, cost.sequence_s
    rule["way_s"], rule["way_token_s"] = traffic.way
    many = traffic.max_in_flight is not None or len(starts) < size
    return layout.World(
        cache=cache,
        cost=_cost(cost),
        arrival=traffic.arrival_s,
        think=traffic.think_s,
        order=waiting_for_none,
        queue=np.zeros(size + 1, layout.RANK),
        due=np.zeros(size + 1 if many else 1, layout.DUE),
        samples=np.zeros(layout.TIMELINE, layout.SAMPLE),
    )


def _rejected(traffic: Traffic, settings: PagedSettings) -> layout.Bools:
    """Prompts without room for an answer, and sequences that the empty pool cannot hold."""
    whole = np.minimum(traffic.prompt_tokens + traffic.output_tokens, settings.max_model_len)
    low, high = 0, settings.max_model_len
    while low < high:
        middle = (low + high + 1) // 2
        fits = most_blocks(settings, middle) < settings.num_blocks
        low, high = (middle, high) if fits else (low, middle - 1)
    found: layout.Bools = (traffic.prompt_tokens >= settings.max_model_len) | (whole > low)
    return found


def _requests(traffic: Traffic, rejected: layout.Bools) -> layout.Array:
    """What each asks, and nothing come of it yet."""
    rows = np.zeros(len(traffic), layout.REQUEST)
    for column in ("arrived", "admitted", "first", "finished"):
        rows[column] = np.nan
    for column in ("prompt", "output"):
        rows[column] = getattr(traffic, f"{column}_tokens")
    rows["priority"], rows["rejected"] = traffic.priority, rejected
    for column in ("first_follower", "next_follower", "backlog_next"):
        rows[column] = -1
    for request in np.flatnonzero(traffic.after >= 0)[::-1].tolist():
        before = rows[traffic.after[request]]
        rows[request]["next_follower"], before["first_follower"] = before["first_follower"], request
    name(traffic, rows)
    return rows


def _cache(traffic: Traffic, settings: PagedSettings, requests: layout.Array) -> layout.Cache:
    served = ~requests["rejected"].astype(bool)
    whole = traffic.prompt_tokens[served] + traffic.output_tokens[served]
    longest = min(int(whole.max(initial=1)), settings.max_model_len)
    smallest = min(group.block_size for group in settings.groups)
    num_groups, wide = len(settings.groups), ceil_div(longest, smallest) + 2
    if longest // settings.hash_block >= 1 << OWN_BITS:
        raise BadQuestion(f"Sequences of {longest:,} tokens in such small blocks are too long.")
    seats = np.zeros(max(1, min(settings.max_num_seqs, len(traffic))), layout.SEAT)
    seats["free"] = np.arange(len(seats))[::-1]
    return layout.Cache(
        pool=_pool(settings, len(seats)),
        ids=dense(traffic.hash_ids),
        starts=traffic.hash_starts,
        requests=requests,
        rules=_rules(traffic, settings),
        groups=_groups(settings),
        table=np.empty((num_groups, len(seats), wide), np.int32),
        held=np.zeros((num_groups, len(seats)), layout.HELD),
        seats=seats,
        hits=np.zeros((num_groups, wide), np.int32),
        scratch=np.zeros(max(wide, num_groups), np.int32),
    )


def _pool(settings: PagedSettings, seats: int) -> layout.Pool:
    """All blocks free, in a ring through block 0."""
    size = settings.num_blocks
    blocks = np.zeros(size, layout.BLOCK)
    blocks["key"] = layout.NONE
    numbers = np.arange(size)
    blocks["next"], blocks["previous"] = (numbers + 1) % size, (numbers - 1) % size
    index = np.zeros(1 << max(4, (2 * size).bit_length()), layout.KEY)
    index["key"] = layout.NONE
    state = np.zeros(1, layout.STATE_ROW)
    state["free"], state["every"] = size - 1, 1
    state["blocked"], state["num_seats"] = -1, seats
    # Keys of blocks that follow each other are so many apart (hits.py).
    state["shift"] = (settings.hash_block * len(settings.groups)).bit_length() - 1
    state["backlog_first"] = state["backlog_last"] = -1
    return layout.Pool(blocks, index, state)


def _rules(traffic: Traffic, settings: PagedSettings) -> layout.Array:
    row = np.zeros(1, layout.RULES)
    states = [group for group in settings.groups if group.kind == "state"]
    values = {
        "num_blocks": settings.num_blocks,
        "max_num_seqs": settings.max_num_seqs,
        "budget": settings.max_num_batched_tokens,
        "max_model_len": settings.max_model_len,
        "caching": settings.prefix_caching,
        "policy": POLICIES.index(settings.policy),
        "chunked": settings.chunked_prefill,
        "long_limit": settings.long_prefill_token_threshold,
        "watermark": settings.watermark_blocks,
        "reserve": settings.reserve_prompt,
        "keyless_first": settings.keyless_first,
        "retention": layout.DENSE if settings.retention is None else settings.retention,
        "alignment": settings.alignment,
        "unit": settings.hash_block,
        "num_groups": len(settings.groups),
        "num_lookups": len(set(settings.groups)),
        "has_states": settings.has_states,
        "state_checkpoint": bool(states) and states[0].checkpoint,
        "smallest": min(group.block_size for group in settings.groups),
        "hash_block": max(traffic.hash_block, 1),
        "most_open": -1 if traffic.max_in_flight is None else traffic.max_in_flight,
    }
    for field, value in values.items():
        row[field] = value
    return row


def _groups(settings: PagedSettings) -> layout.Array:
    rows = np.zeros(len(settings.groups), layout.GROUP)
    made = make_groups(settings, BlockPool(1))
    for number, group in enumerate(made):
        row = rows[number]
        row["kind"], row["size"] = KINDS.index(group.group.kind), group.block_size
        row["window"], row["checkpoint"] = group.group.window, group.group.checkpoint
        row["tail"] = group.tail if isinstance(group, WindowGroup) else 0
        row["cap"] = 0 if group.group.kind == "state" else group.admission_cap or 0
        row["bucket"] = group.numbers[0]
    # Looked up once for groups alike, full attention before the others.
    firsts = [group for group in made if group.number == group.numbers[0]]
    firsts.sort(key=lambda group: (group.group.kind != "full", group.number))
    rows["lookup"][: len(firsts)] = [group.number for group in firsts]
    return rows


def _cost(cost: StepCost) -> layout.Cost:
    attention = np.zeros(len(cost.attention), layout.ATTENTION)
    for row, group in zip(attention, cost.attention, strict=True):
        row["window"] = -1 if group.window is None else group.window
        row["read_s"], row["pair_s"] = group.read_s, group.pair_s
    return layout.Cost(
        knots=np.array([tuple(knot) for knot in cost.linear], layout.KNOT),
        attention=attention,
    )


def _outcome(world: layout.World) -> Outcome:
    state, made = world.cache.pool.state[0], world.cache.requests
    lasted = float(state["last_note"]) or 1.0
    samples = world.samples[: int(state["rows"])]
    return Outcome(
        arrived_s=made["arrived"],
        admitted_s=made["admitted"],
        first_token_s=made["first"],
        finished_s=made["finished"],
        hit_tokens=made["hit"],
        preemptions=made["preemptions"].astype(np.int64),
        rejected=made["rejected"].astype(bool),
        duration_s=float(state["last_note"]),
        num_steps=int(state["num_steps"]),
        queried_tokens=int(state["queried"]),
        computed_tokens=int(state["computed"]),
        recomputed_tokens=int(state["recomputed"]),
        evicted_blocks=int(state["evicted"]),
        num_blocks=len(world.cache.pool.blocks) - 1,
        mean_used_blocks=float(state["used_area"]) / lasted,
        peak_used_blocks=int(state["peak_used"]),
        mean_running=float(state["running_area"]) / lasted,
        max_running=int(state["max_running"]),
        mean_waiting=float(state["waiting_area"]) / lasted,
        max_waiting=int(state["max_waiting"]),
        timeline=_timeline(samples),
    )


def _timeline(samples: layout.Array) -> Timeline:
    return Timeline(
        time_s=samples["time"].copy(),
        used_blocks=samples["used"].copy(),
        running=samples["running"].copy(),
        waiting=samples["waiting"].copy(),
        queried_tokens=samples["queried"].copy(),
        hit_tokens=samples["hits"].copy(),
        preemptions=samples["preemptions"].copy(),
    )
