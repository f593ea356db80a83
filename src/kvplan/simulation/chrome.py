"""A run as a trace that Chrome's and Perfetto's viewers open: requests as rows, gauges as curves.

    phases of a request     queue │ first token │ answer        async slices, one id a request
    counters                blocks in use, running, waiting, hit rate, preemptions

The format is Chrome's trace events in JSON: times in microseconds, ``b`` and ``e`` begin and end a
slice, ``C`` is a counter, ``M`` names a process.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from kvplan.core.errors import BadValue
from kvplan.simulation.outcome import Outcome
from kvplan.simulation.traffic import Traffic

if TYPE_CHECKING:
    from kvplan.simulation.simulate import SimulateAnswer

MOST_REQUESTS: Final = 50_000  # of a file: a viewer takes no more
REQUESTS, ENGINE = 1, 2


def write_trace(answer: SimulateAnswer, path: Path) -> None:
    """The first run of an answer, its first requests where there are very many.

    Raises:
        BadValue: an answer without a run.
    """
    if not hasattr(answer, "copies"):
        raise BadValue("There is no single run to draw a trace of.", "Write one of a simulation.")
    run = answer.runs[0]
    events = [
        *_names(answer),
        *_requests(run.outcome, run.traffic),
        *_counters(run.outcome),
    ]
    said = {"traceEvents": events, "displayTimeUnit": "ms"}
    path.write_text(json.dumps(said, allow_nan=False, separators=(",", ":")), encoding="utf-8")


def _names(answer: SimulateAnswer) -> Iterator[dict[str, Any]]:
    for process, name in (
        (REQUESTS, "requests"),
        (ENGINE, f"engine: {answer.plan.engine}"),
    ):
        yield {
            "name": "process_name",
            "ph": "M",
            "pid": process,
            "args": {"name": name},
        }


def _requests(outcome: Outcome, traffic: Traffic) -> Iterator[dict[str, Any]]:
    """Three slices for each request that ran, one for one that was refused."""
    last = outcome.duration_s
    for index in range(min(len(traffic), MOST_REQUESTS)):
        times = [
            float(column[index])
            for column in (
                outcome.arrived_s,
                outcome.admitted_s,
                outcome.first_token_s,
                outcome.finished_s,
            )
        ]
        if np.isnan(times[0]):
            continue
        ends = [last if np.isnan(time) else time for time in times]
        said = {
            "prompt_tokens": int(traffic.prompt_tokens[index]),
            "output_tokens": int(traffic.output_tokens[index]),
            "hit_tokens": int(outcome.hit_tokens[index]),
            "preemptions": int(outcome.preemptions[index]),
        }
        names: tuple[str, ...] = ("queue", "first token", "answer")
        if outcome.rejected[index]:
            names, ends = ("refused",), ends[:1] * 2
        for name, begin, end in zip(names, ends, ends[1:], strict=False):
            yield _slice("b", name, index, begin, said)
            yield _slice("e", name, index, max(begin, end), {})


def _slice(
    phase: str, name: str, index: int, time_s: float, said: dict[str, int]
) -> dict[str, Any]:
    return {
        "name": name, "cat": "request", "ph": phase, "id": index, "pid": REQUESTS, "tid": 0,
        "ts": round(time_s * 1e6, 3), "args": said,
    }  # fmt: skip


def _counters(outcome: Outcome) -> Iterator[dict[str, Any]]:
    line = outcome.timeline
    queried = np.maximum(line.queried_tokens, 1)
    columns = {
        "blocks in use": line.used_blocks,
        "running": line.running,
        "waiting": line.waiting,
        "prefix hit rate": line.hit_tokens / queried,
        "preemptions": line.preemptions,
    }
    for place, time_s in enumerate(line.time_s.tolist()):
        for name, column in columns.items():
            yield {
                "name": name, "ph": "C", "pid": ENGINE, "tid": 0, "ts": round(time_s * 1e6, 3),
                "args": {name: float(column[place])},
            }  # fmt: skip
