"""The arrays that the compiled engine works on: rows of fixed fields, one kind a table.

blocks     a row a block; free ones are a ring through block 0, the null block
index      open addressing, a row a key: the oldest and the newest block found by it
seats      a row a running request; ``held`` and ``table`` say what it holds in each group
queue      a heap of waiting requests in the policy's order
due        a heap of requests that wait for a predecessor's end and the time to think
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = Any  # rows of the fields below: compiled code reads them by name
Longs = NDArray[np.int64]
Words = NDArray[np.int32]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

NONE: Final = -(1 << 63)  # no key
FULL, WINDOW, CHUNKED, STATE = range(4)
FCFS, PRIORITY, SHORTEST = range(3)
DENSE: Final = -1  # retention of every boundary
TIMELINE: Final = 4096  # rows at most
# As arguments: a plain constant would have the function compiled once more, for itself.
ZERO, ONE = np.int64(0), np.int64(1)
NO, YES = ZERO, ONE


def _row(names: str, kind: str) -> list[tuple[str, str]]:
    return [(name, kind) for name in names.split()]


BLOCK = np.dtype(_row("key", "i8") + _row("tokens holders next previous newer older", "i4"))
KEY = np.dtype(_row("key", "i8") + _row("oldest newest written spare", "i4"))
GROUP = np.dtype(_row("kind size window checkpoint tail cap bucket lookup hits", "i8"))
HELD = np.dtype(_row("length registered last_state retired exported exported_block", "i8"))
SEAT = np.dtype(
    _row("request known computed prompt end junction scheduled quiet running free", "i8")
)
REQUEST = np.dtype(
    _row("arrived admitted first finished", "f8")
    + _row("hit prompt", "i8")
    + _row(
        "output priority named source preemptions generated furthest first_follower "
        "next_follower backlog_next rejected spare",
        "i4",
    )
)
RANK = np.dtype(_row("rank order request", "i8"))
DUE = np.dtype(_row("time", "f8") + _row("serial request", "i8"))
RULES = np.dtype(
    _row(
        "num_blocks max_num_seqs budget max_model_len caching policy chunked long_limit watermark "
        "reserve keyless_first retention alignment unit num_groups num_lookups has_states "
        "state_checkpoint smallest hash_block most_open step_by_step ahead num_requests",
        "i8",
    )
    + _row("fixed_s sequence_s way_s way_token_s", "f8")
)
STATE_ROW = np.dtype(
    _row("now began used_area running_area waiting_area last_note", "f8")
    + _row(
        "free evicted freed shared step num_running num_waiting num_seats front back serial sent "
        "num_due open backlog_first backlog_last budget gave_way queried hits computed recomputed "
        "preemptions peak_used max_running max_waiting used running waiting rows every seen ended "
        "num_steps long_limit blocked blocked_freed blocked_shared shift",
        "i8",
    )
)
SAMPLE = np.dtype(_row("time", "f8") + _row("used running waiting queried hits preemptions", "i8"))
ATTENTION = np.dtype(_row("window seen below pairs", "i8") + _row("read_s pair_s", "f8"))
KNOT = np.dtype(_row("tokens seconds", "f8"))


class Pool(NamedTuple):
    """Blocks, what they are found by, and the counts that go with them."""

    blocks: Array
    index: Array
    state: Array


class Cache(NamedTuple):
    """The pool in groups, and what each seat holds of it.

    ``ids`` from ``starts`` name the first tokens of a request's ``source``; ``hits`` are the blocks
    that the last lookup found, by group.
    """

    pool: Pool
    ids: Longs
    starts: Longs
    requests: Array
    rules: Array
    groups: Array
    table: Words
    held: Array
    seats: Array
    hits: Words
    scratch: Words


class Cost(NamedTuple):
    """A step's cost: knots by new tokens, attention groups with the load of a step."""

    knots: Array
    attention: Array


class World(NamedTuple):
    """Everything. ``order`` are the requests that wait for nobody, in that of their time."""

    cache: Cache
    cost: Cost
    arrival: Floats
    think: Floats
    order: Words
    queue: Array
    due: Array
    samples: Array
