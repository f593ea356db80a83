"""A fit of rates to measured rows: each starts at a prior and goes as far as many rows ask for.

A rate starts at what physics and experience say and is held there; a factor of an engine, a card's
family, a type or a front end is held at 1. What no row speaks of stays where it was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from tools.speed_arrays import Columns, predicted, rates_of, taken

SIGMA: Final = 0.08  # a relative error that counts as one
FIRST_TOKENS: Final = 0.3


class Prior(NamedTuple):
    """Where a rate starts, and how far it goes for one unit of error: a logarithm's deviation."""

    value: float
    width: float


GENERAL: Final[dict[str, Prior]] = {
    "share_read": Prior(0.85, 0.1),
    "share_experts": Prior(0.65, 0.2),
    "share_cache": Prior(0.8, 0.1),
    "share_dense": Prior(0.65, 0.15),
    "share_products": Prior(0.45, 0.5),
    "share_attention": Prior(0.4, 0.3),
    "share_link": Prior(0.5, 0.5),
    "step_s": Prior(3e-4, 0.1),  # schedulers work while the card does
    "layer_s": Prior(4e-5, 0.3),  # ten kernels at a few microseconds
    "mixed_s": Prior(4e-5, 0.5),
    "sequence_s": Prior(1.5e-5, 0.4),
    "passes": Prior(1.4, 0.3),  # once, at seven tenths of the bandwidth
    "message_s": Prior(5e-6, 0.5),
    "turn_s": Prior(1e-5, 0.5),
    "hop_s": Prior(2e-4, 0.7),  # a copy, an event waited for, a graph cut in two (llama.cpp)
    "launch_s": Prior(3.5e-4, 0.4),  # some fifteen kernels at 20 µs of Python each
    "request_s": Prior(1e-2, 1.0),
    # 1.7 to 2.6 µs here, of prose and of drawn tokens (SmolLM2's tokenizer, tokenizers 0.23.3)
    "prompt_s": Prior(2e-6, 0.3),
    "uneven": Prior(0.2, 0.5),
    "spread": Prior(0.7, 0.3),
    "sharpness": Prior(3.0, 0.07),
    "experts_sharpness": Prior(2.5, 0.15),
    "bubble": Prior(0.1, 0.5),
    "waves": Prior(0.5, 0.5),
    "drawn_waves": Prior(0.15, 0.5),
    "lockstep": Prior(0.5, 0.5),
}
# Factors: of which column, of which rates, how far.
FACTORS: Final[tuple[tuple[str, tuple[str, ...], float], ...]] = (
    ("engine", ("step_s",), 0.25),
    ("engine", ("layer_s", "sequence_s"), 0.4),
    ("engine", ("mixed_s", "launch_s", "request_s"), 0.6),
    ("engine", ("turn_s", "message_s", "share_link", "passes"), 0.25),
    ("engine", ("share_dense", "share_attention", "share_cache"), 0.2),
    ("engine", ("share_read",), 0.15),
    (
        "family",
        (
            "share_read", "share_cache", "share_dense", "share_products", "share_attention",
            "share_experts", "layer_s", "message_s", "share_link",
        ),
        0.2,
    ),
    ("era", ("step_s", "layer_s"), 1.0),
    # Dynamo's front end, which is compiled, in place of the engine's own server in Python.
    ("front", ("request_s", "prompt_s"), 1.0),
    ("dense_type", ("share_dense",), 0.4),
    ("experts_type", ("share_products",), 0.5),
)  # fmt: skip


FP8: Final = "fp8"
BLOCKS: Final = "fp8 blocks"
BLOCKS_WIDTH: Final = 0.25


class Parameter(NamedTuple):
    """One number of the fit: a general rate (no column), or a factor of one trait."""

    rate: str
    column: str
    trait: str
    start: float
    width: float


def parameters(found: Columns) -> list[Parameter]:
    """The numbers that these rows can speak of."""
    listed = [Parameter(n, "", "", np.log(p.value), p.width) for n, p in GENERAL.items()]
    for column, names, width in FACTORS:
        for trait in sorted(set(getattr(found, column)) - {""}):
            wide = BLOCKS_WIDTH if trait == BLOCKS else width
            listed += [Parameter(name, column, str(trait), 0.0, wide) for name in names]
    return listed


def rates(listed: list[Parameter], values: Any, found: Columns) -> Columns:
    """The rates of each row."""
    logs: dict[str, Any] = {name: np.zeros(len(found.answer)) for name in GENERAL}
    for parameter, value in zip(listed, values, strict=True):
        mask = _has(found, parameter) if parameter.column else 1.0
        logs[parameter.rate] = logs[parameter.rate] + value * mask
    return rates_of({name: np.exp(log) for name, log in logs.items()})


def _has(found: Columns, parameter: Parameter) -> Any:
    """Which rows have a trait; blocks of FP8 are FP8 too, and their own factor comes on top."""
    column = getattr(found, parameter.column)
    if parameter.trait == FP8:
        return (column == FP8) | (column == BLOCKS)
    return column == parameter.trait


Key = tuple[str, str, str]


def fit(
    found: Columns, near: dict[Key, float] | None = None, rounds: int = 60
) -> tuple[list[Parameter], Any]:
    """The numbers that the rows ask for: Levenberg and Marquardt's steps on a robust error.

    ``near`` are numbers of another fit to begin from.
    """
    listed = parameters(found)
    start = np.array([p.start for p in listed])
    begin = np.array([(near or {}).get(p[:3], p.start) for p in listed])
    width = np.array([p.width for p in listed])
    truth, weight = np.log(found.answer), _weights(found)

    def error(values: Any) -> Any:
        return (np.log(predicted(found, rates(listed, values, found))) - truth) / SIGMA * weight

    return listed, _solve(error, start, width, begin, rounds)


def _weights(found: Columns) -> Any:
    """A series of many rows says little more than one of few: it counts by its number^0.7.

    A first token has a client's and a server's habits in it, and scatters three times as much.
    """
    keys = list(zip(found.model, found.engine, found.family, found.kind, found.metric, strict=True))
    count = Counter(keys)
    even = np.array([min(1.4, max(0.7, (40 / count[key]) ** 0.15)) for key in keys])
    return even * np.where(found.metric == "ttft_s", FIRST_TOKENS, 1.0)


def _solve(error: Callable[[Any], Any], start: Any, width: Any, begin: Any, rounds: int) -> Any:
    """The least of the robust squares of ``error`` and of the distances from the priors."""
    here, damping = begin.copy(), 1e-2
    misses = error(here)

    def cost(missed: Any, at: Any) -> float:
        robust = 2 * (np.sqrt(1 + missed**2) - 1)
        return float(np.sum(robust) + np.sum(((at - start) / width) ** 2))

    least = cost(misses, here)
    for _ in range(rounds):
        slope = np.stack(
            [(error(here + 1e-4 * axis) - misses) / 1e-4 for axis in np.eye(len(here))], axis=1
        )
        inside = 1 / np.sqrt(1 + misses**2)
        bend = slope.T @ (slope * inside[:, None]) + np.diag(1 / width**2)
        pull = slope.T @ (misses * inside) + (here - start) / width**2
        for _ in range(8):
            damped = bend + damping * np.diag(np.diag(bend))
            there = here - np.clip(np.linalg.solve(damped, pull), -1, 1)
            missed = error(there)
            found = cost(missed, there)
            if found < least:
                break
            damping *= 4
        else:
            return here
        settled = (least - found) < 1e-5 * least
        here, misses, least, damping = there, missed, found, max(damping / 5, 1e-6)
        if settled:
            return here
    return here


def left_out(found: Columns, near: dict[Key, float]) -> Any:
    """What each row is answered with by a fit that never saw its model; nan where it has few."""
    answers = np.full(len(found.answer), np.nan)
    for model in sorted(set(found.model)):
        mask = found.model == model
        if mask.sum() < 5 or (~mask).sum() < 5:
            continue
        listed, values = fit(taken(found, ~mask), near, rounds=6)
        part = taken(found, mask)
        answers[mask] = predicted(part, rates(listed, values, part))
    return answers
