"""Sessions of coding agents, their block ids run-length coded: one session a line.

    {"id", "block": 64, "r": [[t_s, input, output, api_s, think_s, [[first id, count], …]], …]}

An item of ``r`` may be ``{"sub": [...], "t": s}``: a sub-agent that the request before it started;
its times begin at 0. Ids are local to a session (callanjfox/kv-cache-tester 94f6046d, condensed).
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any, NamedTuple

from kvplan.simulation.traces.base import Reading, Row, Take
from kvplan.simulation.traces.columns import BadRow, Columns, seconds, tokens

NAME = "agentic"
FIELDS = 6
MOST_ID = 1 << 40


def claims(row: Row) -> bool:
    """By the runs."""
    return "r" in row and "block" in row


def reader(row: Row, columns: Columns, reading: Reading) -> Take:
    """A session's requests wait for one another, unless arrivals are taken as recorded."""
    block = columns.hash_block = _block(row)
    waits = not reading.recorded
    if waits:
        columns.note("Sessions begin at 0 s, and a request waits for the one before it.")
    base = 0

    def take(line: int, row: Row) -> None:
        nonlocal base
        if _block(row) != block:
            raise BadRow(f"blocks of {_block(row)} tokens after blocks of {block}")
        items = row.get("r")
        if not isinstance(items, list):
            raise BadRow("r is no list")
        session = _Session(columns, line, base, waits)
        session.take(items)
        base = session.top

    return take


def _block(row: Row) -> int:
    block = row.get("block")
    if type(block) is not int or not 1 <= block <= 1 << 20:
        raise BadRow("block is no number of tokens")
    return block


class Sent(NamedTuple):
    """A request that was taken, and when the trace has its answer."""

    request: int
    answered_s: float


class _Session:
    """The requests of a line; a bad one is counted, and the next follows the last good one.

    Local ids are moved up by ``base``; ``top`` is above all that were given.
    """

    def __init__(self, columns: Columns, line: int, base: int, waits: bool) -> None:
        self.columns, self.line, self.base, self.waits = columns, line, base, waits
        self.top = base

    def take(self, items: Sequence[Any], start_s: float = 0.0, before: Sent | None = None) -> None:
        """The requests one after the other, and the sub-agents that they start."""
        for place, item in enumerate(items):
            try:
                if isinstance(item, dict):
                    self._sub(item, before)
                else:
                    before = self._request(item, start_s, before)
            except BadRow as why:
                self.columns.skip(self.line, f"request {place + 1}: {why}")
            if self.columns.full:
                return

    def _sub(self, item: dict[str, Any], before: Sent | None) -> None:
        """A sub-agent's requests: the first one waits for what started it."""
        inner = item.get("sub")
        if not isinstance(inner, list) or any(isinstance(one, dict) for one in inner):
            raise BadRow("sub is no list of requests")
        start_s = seconds(item.get("t"), "start")
        if inner and before is not None and isinstance(inner[0], list) and len(inner[0]) == FIELDS:
            inner = [[*inner[0][:4], None, inner[0][5]], *inner[1:]]
        self.take(inner, start_s, before)

    def _request(self, item: Any, start_s: float, before: Sent | None) -> Sent:
        if not isinstance(item, list) or len(item) != FIELDS:
            raise BadRow("not six fields")
        at, prompt, output, api, think, runs = item
        arrival = start_s + seconds(at, "arrival")
        took = 0.0 if api is None else seconds(api, "API time")
        if before is not None:
            arrival = max(arrival, self.columns.arrival_s[before.request])
        if think is None:  # the pause since the answer before, where there is one
            think = max(0.0, arrival - before.answered_s) if before is not None else 0.0
        index = self.columns.add(
            arrival_s=arrival,
            prompt_tokens=prompt,
            output_tokens=output,
            ids=self._ids(runs, tokens(prompt, "prompt")),
            after=before.request if before is not None and self.waits else -1,
            think_s=think,
        )
        return Sent(index, arrival + took)

    def _ids(self, runs: Any, prompt: int) -> array[int]:
        """The ids of runs, moved to the session's own."""
        import numpy as np

        if not isinstance(runs, list):
            raise BadRow("the runs of ids are no list")
        ids, left = array("q"), -(-prompt // self.columns.hash_block)
        for run in runs:
            first, count = _run(run)
            left -= count
            if left < 0:
                raise BadRow(f"more ids than a prompt of {prompt:,} tokens has blocks")
            first += self.base
            ids.frombytes(np.arange(first, first + count, dtype=np.int64).tobytes())
            self.top = max(self.top, first + count)
        return ids


def _run(run: Any) -> tuple[int, int]:
    """The first id of a run and how many there are."""
    if isinstance(run, list) and len(run) == 2:
        first, count = run
        if type(first) is type(count) is int and 0 <= first < MOST_ID and 1 <= count < MOST_ID:
            return first, count
    raise BadRow("a run of ids that is not [first, count]")
