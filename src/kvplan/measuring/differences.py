"""Predicted beside measured, and why they differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from kvplan.measuring.predicted import BOUND, Predicted
from kvplan.measuring.server import Server
from kvplan.measuring.summary import Run

NEAR = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A figure measured and predicted; ``ratio`` is measured over predicted."""

    name: str
    run: int | None
    kind: str
    measured: float
    predicted: float
    ratio: float | None
    why: str

    def to_dict(self) -> dict[str, Any]:
        """The contract's row of ``differences``."""
        return asdict(self)


def differences(
    server: Server, runs: Sequence[Run], predicted: Iterable[Predicted]
) -> Iterator[Difference]:
    """Each prediction whose figure was measured."""
    for one in predicted:
        run = None if one.run is None else runs[one.run]
        measured = _measured(one, server, runs, run)
        if measured is None:
            continue
        ratio = measured / one.value if one.value else (1.0 if not measured else None)
        yield Difference(
            name=one.name,
            run=one.run,
            kind=one.kind,
            measured=measured,
            predicted=one.value,
            ratio=ratio,
            why=_why(one, run, measured, ratio),
        )


def _measured(one: Predicted, server: Server, runs: Sequence[Run], run: Run | None) -> float | None:
    if one.name == "pool_tokens":
        return server.pool_tokens
    if one.name == "memory_bytes":
        return max((r.peak_memory_bytes for r in runs if r.peak_memory_bytes), default=None)
    if run is None:
        return None
    if one.name == "cached_tokens":
        return run.cached_tokens
    return run.itl_s["p50"] if one.name == "decode_step_s" else None


def _why(one: Predicted, run: Run | None, measured: float, ratio: float | None) -> str:
    """In words that a person can act on."""
    if one.kind == BOUND:
        if ratio is not None and ratio < 1:
            return (
                "faster than the bound: fewer bytes are read than thought, or the bandwidth "
                "is higher"
            )
        return f"{ratio:.1f} times the bound, which counts reading memory alone" if ratio else ""
    if ratio is not None and abs(ratio - 1) <= (one.error or NEAR):
        return "as predicted"
    if one.name == "cached_tokens" and run is not None:
        return _why_reuse(run, measured, one.value)
    if one.name == "memory_bytes":
        return (
            "resident memory counts pages of the program and of its libraries, and leaves out "
            "what was not touched yet"
        )
    if one.name == "pool_tokens":
        return "flags that the server does not tell, or memory that others hold: see kvplan explain"
    if one.name == "decode_step_s" and run is not None and (run.concurrency or 0) > 1:
        return "prefills of other requests stand between the tokens of a closed loop"
    return "this machine, engine and model were not calibrated: --calibration takes this run"


def _why_reuse(run: Run, measured: float, predicted: float) -> str:
    if run.pressure:
        return "parts stayed: blocks at the end of a prompt go before those at its beginning"
    if measured > predicted:
        return "the ends of some prompts begin alike, or a template is shared"
    if run.missed_requests:
        return (
            f"{run.missed_requests:,} of {run.requests:,} requests found their prefix gone: "
            "evicted, still being computed by another, or in windows or states that cannot go back"
        )
    return "the engine keeps whole blocks, or computes the last tokens again"
