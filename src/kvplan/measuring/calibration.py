"""Measured steps to the coefficients of the formula that predicts the others.

    decode of a batch     fixed + batch × (sequence + read × context)
    prefill of a prompt   fixed + token × length + pair × pairs(length)

Two lengths at one batch give ``fixed`` (the weights) and ``read`` (the cache); several batches give
``sequence`` too, and first tokens of prompts that nobody sent before give ``token`` and ``pair``.
More points than coefficients are met by least squares of the relative errors, none below nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from kvplan.core.errors import BadQuestion
from kvplan.core.measured import Calibration, Decode, Prefill, Reads
from kvplan.core.step import Chunk, pairs
from kvplan.measuring.least_squares import fit_relative
from kvplan.measuring.phases import COLD, UNIQUE
from kvplan.measuring.server import Server
from kvplan.measuring.summary import Run


class Point(NamedTuple):
    """A decode step as it was measured: sequences, tokens that each sees, seconds."""

    batch: float
    context: float
    seconds: float


class Prompted(NamedTuple):
    """A prompt that was computed whole: its tokens, and the seconds to its first token."""

    tokens: int
    seconds: float


def calibrate(points: Sequence[Point]) -> Decode:
    """The coefficients of decode steps that meet the points best.

    Raises:
        BadQuestion: fewer than two different points.
    """
    if len({(point.batch, point.context) for point in points}) < 2:
        raise BadQuestion(
            "A calibration needs steps at two lengths or batches at least.",
            "Measure with --prompt 128,2k, or --concurrency 1,4.",
        )
    several = len({point.batch for point in points}) > 1 and len(points) > 2
    rows = [(1.0, p.batch * p.context, *((p.batch,) if several else ())) for p in points]
    fixed, read, *more = fit_relative(rows, [point.seconds for point in points])
    found = Decode(fixed_s=fixed, sequence_s=sum(more), read_s=read, error=0.0)
    worst = max(abs(found.seconds(p.batch, p.context) / p.seconds - 1) for p in points)
    return Decode(fixed_s=fixed, sequence_s=sum(more), read_s=read, error=worst)


def calibrate_prefill(prompted: Sequence[Prompted], fixed_s: float) -> Prefill | None:
    """The coefficients of prefills beside a step's fixed cost; None without a prompt."""
    if not prompted:
        return None
    rows: list[tuple[float, ...]] = [
        (float(one.tokens), float(pairs(Chunk(0, one.tokens), None))) for one in prompted
    ]
    if len({one.tokens for one in prompted}) < 2:
        rows = [row[:1] for row in rows]
    token, *pair = fit_relative(rows, [max(1e-9, one.seconds - fixed_s) for one in prompted])
    found = Prefill(token_s=token, pair_s=sum(pair), error=0.0)
    errors = [abs((fixed_s + found.seconds(one.tokens)) / one.seconds - 1) for one in prompted]
    return Prefill(token_s=token, pair_s=sum(pair), error=max(errors))


def _fastest(points: Iterable[Point]) -> list[Point]:
    """Of each batch and length the least: prompts of others between two tokens only make more."""
    best: dict[tuple[float, float], Point] = {}
    for point in points:
        key = (point.batch, round(point.context))
        if key not in best or point.seconds < best[key].seconds:
            best[key] = point
    return list(best.values())


def calibration_of(
    server: Server,
    runs: Iterable[Run],
    card: str | None,
    reads: Reads | None,
    bandwidth: int | None = None,
) -> Calibration | None:
    """What a measurement can calibrate; None where it has too few lengths.

    ``reads`` is what its steps read, where the model is known; ``bandwidth`` the memory's.
    """
    rows = [run for run in runs if run.rate is None and run.requests > run.failed]
    points = _fastest(
        Point(run.concurrency, run.mean_context_tokens, run.itl_s["p50"])
        for run in rows
        if run.concurrency and run.itl_s["p50"]
    )
    prompted = [
        Prompted(run.prompt, run.ttft_s["p50"])
        for run in rows
        if run.prompt
        and run.concurrency == 1
        and run.prefix in (UNIQUE, COLD)
        and run.ttft_s["p50"]
    ]
    try:
        decode = calibrate(points)
    except BadQuestion:
        return None
    return Calibration(
        engine=server.engine,
        version=server.version,
        model=Path(server.source or server.model).name,
        card=card,
        decode=decode,
        prefill=calibrate_prefill(prompted, decode.fixed_s),
        reads=reads,
        most_batch=round(max(point.batch for point in points)),
        bandwidth=bandwidth,
        decode_points=tuple(points),
        prefill_points=tuple(prompted),
    )
