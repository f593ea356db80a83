"""Fit the rates that engines reach to published measurements, and write data/speed.json.

python -m tools.calibrate_speed            fit and write
python -m tools.calibrate_speed --check    say how far the kept-aside rows are, write nothing

Only rows of calibration models are fitted (``speed_rows.split``). Every rate starts at what
physics and experience say and is held there by a prior; a factor of an engine, a card's family or
a type is held at 1. So a rate moves only as far as many rows ask for, and what no row speaks of
stays where it was.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from tools.speed_arrays import Columns, arrays, predicted, rates_of, taken
from tools.speed_data import Data, data
from tools.speed_recipes import flags
from tools.speed_rows import SEED, Row, published

TARGET: Final = Path(__file__).parent.parent / "src" / "kvplan" / "data" / "speed.json"
SIGMA: Final = 0.08  # a relative error that counts as one
FEW_CLIENTS: Final = 4
ERROR_SHARE: Final = 0.9  # of rows of models that were left out of a fit, inside the band


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
    "token_s": Prior(1e-7, 1.0),
    "message_s": Prior(5e-6, 0.5),
    "turn_s": Prior(1e-5, 0.5),
    "launch_s": Prior(3.5e-4, 0.4),  # some fifteen kernels at 20 µs of Python each
    "request_s": Prior(5e-3, 2.0),
    "spread": Prior(0.7, 0.3),
    "sharpness": Prior(2.5, 0.15),
    "bubble": Prior(0.1, 0.5),
    "waves": Prior(0.5, 0.5),
    "drawn_waves": Prior(0.15, 0.5),
    "lockstep": Prior(0.5, 0.5),
}
# Factors: of which column, of which rates, how far.
FACTORS: Final[tuple[tuple[str, tuple[str, ...], float], ...]] = (
    ("engine", ("step_s",), 0.25),
    ("engine", ("layer_s", "sequence_s"), 0.4),
    ("engine", ("mixed_s", "token_s", "launch_s", "request_s"), 0.6),
    ("engine", ("turn_s", "message_s"), 0.25),
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
    ("dense_type", ("share_dense",), 0.4),
    ("experts_type", ("share_products",), 0.5),
)  # fmt: skip


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
            listed += [Parameter(name, column, str(trait), 0.0, width) for name in names]
    return listed


def rates(listed: list[Parameter], values: Any, found: Columns) -> Columns:
    """The rates of each row."""
    logs: dict[str, Any] = {name: np.zeros(len(found.answer)) for name in GENERAL}
    for parameter, value in zip(listed, values, strict=True):
        mask = getattr(found, parameter.column) == parameter.trait if parameter.column else 1.0
        logs[parameter.rate] = logs[parameter.rate] + value * mask
    return rates_of({name: np.exp(log) for name, log in logs.items()})


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

    A first token has a client's and a server's habits in it: it counts half.
    """
    keys = list(zip(found.model, found.engine, found.family, found.kind, found.metric, strict=True))
    count = Counter(keys)
    even = np.array([min(1.4, max(0.7, (40 / count[key]) ** 0.15)) for key in keys])
    return even * np.where(found.metric == "ttft_s", 0.5, 1.0)


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


def fitted(row: Row) -> bool:
    """Whether a row may speak in a fit.

    The first token in a loop is the scheduler's as much, but for a few clients with lengths of
    their own, who seldom wait for each other: it is their prompt's and their request's time.
    """
    if row.metric != "ttft_s" or row.kind != "loop":
        return True
    few = row.drawn and row.concurrency <= FEW_CLIENTS
    return few and "--batch-wait-timeout-iters" not in flags(row)


def main() -> int:
    """Fit, report, and write unless told to check."""
    found = data()
    speaking = [c for c in found.cases if fitted(c.row) and c.row.group not in found.aside]
    every = arrays(speaking)
    listed, values = fit(every)
    fits = predicted(every, rates(listed, values, every))
    print(f"{len(speaking)} rows fitted: median error {_median(fits, every):.1%}")
    table = _table(found, every, listed, values)
    if "--check" not in sys.argv:
        TARGET.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
        print(f"wrote {TARGET}")
    return 0


def _median(answers: Any, found: Columns) -> float:
    return float(np.median(np.abs(answers / found.answer - 1)))


def _table(found: Data, every: Columns, listed: list[Parameter], values: Any) -> Any:
    """The data file."""
    table = json.loads(TARGET.read_text(encoding="utf-8"))
    factors: dict[str, dict[str, float]] = {}
    types: dict[str, dict[str, float]] = {"dense": {}, "experts": {}}
    for p, value in zip(listed, values, strict=True):
        figure = float(f"{np.exp(value):.4g}")
        if p.column.endswith("_type"):
            types[p.column.removesuffix("_type")][p.trait] = figure
        elif p.column and abs(figure - 1) > 0.002:
            factors.setdefault(f"{p.column} {p.trait}", {})[p.rate] = figure
    general = {
        p.rate: float(f"{np.exp(v):.4g}")
        for p, v in zip(listed, values, strict=True)
        if not p.column
    }
    return {
        "source": "published measurements in tests/reference/speed, fitted by "
        "tools/calibrate_speed.py",
        "until": max(raw["date"][:7] for raw in published() if "-" in raw.get("date", "")[4:5]),
        "rows": len(every.answer),
        "seed": SEED,
        "aside": sorted(found.aside),
        "left_out": dict(sorted(found.left.items(), key=lambda item: -item[1])),
        "families": table["families"],
        "eras": table["eras"],
        "general": general,
        "types": types,
        "factors": factors,
        "errors": errors(every, {p[:3]: v for p, v in zip(listed, values, strict=True)}),
        "measured": {
            f"{engine} on {family}": count
            for (engine, family), count in sorted(
                Counter(zip(every.engine.tolist(), every.family.tolist(), strict=True)).items()
            )
        },
    }


def errors(every: Columns, near: dict[Key, float]) -> dict[str, float]:
    """Half widths of the bands: what nine of ten rows of a model that a fit never saw keep to."""
    answers = left_out(every, near)
    seen = ~np.isnan(answers)
    off = np.abs(np.log(answers[seen] / every.answer[seen]))
    part = taken(every, seen)
    speaks = part.metric != "ttft_s"
    found = {}
    for name, mask in (("dense", ~part.mixture), ("mixture", part.mixture)):
        chosen = off[mask & speaks]
        found[name] = float(f"{np.expm1(np.quantile(chosen, ERROR_SHARE)):.2g}")
    chosen = off[~speaks]
    found["ttft"] = float(f"{np.expm1(np.quantile(chosen, ERROR_SHARE)):.2g}")
    return found


if __name__ == "__main__":
    raise SystemExit(main())
