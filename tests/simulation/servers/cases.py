"""Traffic and servers of tiny sizes, and a loop that checks a server after every call."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kvplan.simulation.loop import Loop
from kvplan.simulation.outcome import Outcome
from kvplan.simulation.router import RoundRobin, Router
from kvplan.simulation.servers.base import Batch, Request, Server
from kvplan.simulation.traffic import Traffic


def request(index: int, prompt: int, output: int, ids: Sequence[int] = (), block: int = 1):
    return Request(index=index, prompt=prompt, output=output, ids=list(ids), id_tokens=block)


def traffic(
    rows: Sequence[tuple[float, int, int]],
    ids: Sequence[Sequence[int]] | None = None,
    block: int = 1,
    max_in_flight: int | None = None,
    after: Sequence[int] | None = None,
    priority: Sequence[int] | None = None,
) -> Traffic:
    """Rows of (arrival, prompt, output), with the ids of their blocks."""
    count = len(rows)
    keys = ids or [[]] * count
    return Traffic(
        arrival_s=np.array([row[0] for row in rows], dtype=np.float64),
        prompt_tokens=np.array([row[1] for row in rows], dtype=np.int64),
        output_tokens=np.array([row[2] for row in rows], dtype=np.int64),
        after=np.array(after or [-1] * count, dtype=np.int64),
        think_s=np.zeros(count),
        priority=np.array(priority or [0] * count, dtype=np.int64),
        hash_ids=np.array([key for row in keys for key in row], dtype=np.int64),
        hash_starts=np.cumsum([0, *(len(row) for row in keys)], dtype=np.int64),
        hash_block=block,
        source="test",
        max_in_flight=max_in_flight,
    )


def a_second(batch: Batch) -> float:
    """Every step takes a second."""
    return 1.0


def random_traffic(seed: int, count: int = 40, block: int = 4) -> Traffic:
    """Prompts of up to 60 tokens that share beginnings, some of them whole."""
    rng = np.random.default_rng(seed)
    trees = rng.integers(0, 3, size=(count, 15)).cumsum(axis=1) * 100 + np.arange(15)
    rows, ids = [], []
    for index in range(count):
        prompt = int(rng.integers(1, 60))
        rows.append((float(rng.integers(0, 30)), prompt, int(rng.integers(1, 25))))
        ids.append(trees[index, : -(-prompt // block)].tolist())
    rows.sort(key=lambda row: row[0])
    return traffic(rows, ids, block)


def run(
    work: Traffic,
    *servers: Server,
    router: Router | None = None,
    step_s=a_second,
    ahead: bool = False,
) -> Outcome:
    """The loop's outcome; every server is checked whenever a step is timed."""

    def checked(batch: Batch) -> float:
        for server in servers:
            server.check_integrity()
        return step_s(batch)

    loop = Loop(work, servers, router or RoundRobin(), checked, ahead=ahead)
    outcome = loop.run()
    for server in servers:
        server.check_integrity()
        assert not server.running, "a request that never ended"
        assert not server.waiting, "a request that never began"
        assert server.used_blocks == 0, "cache that nobody holds"
    return outcome
