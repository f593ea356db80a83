"""Fit the rates that engines reach to published measurements, and write data/speed.json.

python -m tools.calibrate_speed                   fit and write
python -m tools.calibrate_speed --check           fit, write nothing
python -m tools.calibrate_speed --without MODEL   fit without a calibration model, and keep how far
                                                  its loops are off for the accuracy page

Only rows of calibration models are fitted (``speed_data.split``), as ``speed_fit`` says.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from math import inf
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from kvplan.planning.speed import calibration
from tools.speed_arrays import Columns, arrays, predicted, taken
from tools.speed_cases import Case, answered
from tools.speed_data import SEED, WITHOUT, Data, data
from tools.speed_fit import BLOCKS, FP8, Key, Parameter, fit, left_out, rates
from tools.speed_rows import is_first_in_loop, published
from tools.speed_simulated import first_tokens

TARGET: Final = Path(__file__).parent.parent / "src" / "kvplan" / "data" / "speed.json"
ROUNDS: Final = 3  # of the simulator; the second changes rates by a few percent, the third by less
ERROR_SHARE: Final = 0.9  # of rows of models that were left out of a fit, inside the band


def fitted(case: Case) -> bool:
    """Whether a row may speak in a fit: a first token only where all of its clients run."""
    if not is_first_in_loop(case.row):
        return True
    return case.plan.starts and case.row.concurrency <= case.capacity * case.ranks


def fit_with_simulator(found: Data, cases: list[Case]) -> tuple[Columns, list[Parameter], Any]:
    """The rows that were fitted and the numbers that they ask for, first tokens in loops as the
    simulator answers them.

    The simulator's answer over the formula's is taken at the numbers so far and held while the next
    are looked for; a loop that it cannot answer is left out.
    """
    loops = np.array([is_first_in_loop(case.row) for case in cases])
    every = arrays(cases)
    listed, values = fit(taken(every, ~loops))
    for _ in range(ROUNDS):
        write(_table(found, taken(every, ~loops), listed, values, {}))
        answers = first_tokens([case for case, loop in zip(cases, loops, strict=True) if loop])
        every.simulated[:] = 1.0
        formula = predicted(every, rates(listed, values, every))
        every.simulated[loops] = [answer or np.nan for answer in answers] / formula[loops]
        speaking = taken(every, ~np.isnan(every.simulated))
        near = {p[:3]: v for p, v in zip(listed, values, strict=True)}
        listed, values = fit(speaking, near)
    return speaking, listed, values


def write(table: Any) -> None:
    """The data file, which the package reads anew."""
    TARGET.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    calibration.table.cache_clear()
    calibration.calibrated.cache_clear()


def main() -> int:
    """Fit, and write unless told to check; without a model, write how far it is off instead."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--check", action="store_true", help="write nothing")
    options.add_argument("--without", metavar="MODEL", help="a calibration model to leave out")
    asked = options.parse_args()
    found, before = data(), TARGET.read_text(encoding="utf-8")
    known = [c for c in found.cases if c.row.group not in found.aside]
    cases = [c for c in known if fitted(c) and c.row.group != asked.without]
    every, listed, values = fit_with_simulator(found, cases)
    fits = predicted(every, rates(listed, values, every))
    print(f"{len(every.answer)} rows fitted: median error {_median(fits / every.answer - 1):.1%}")
    if asked.without:
        write(_table(found, every, listed, values, {}))
        keep(asked.without, off_by([c for c in known if c.row.group == asked.without]))
    if asked.without or asked.check:
        TARGET.write_text(before, encoding="utf-8")
        return 0
    near = {p[:3]: v for p, v in zip(listed, values, strict=True)}
    write(_table(found, every, listed, values, errors(every, near)))
    print(f"wrote {TARGET}")
    return 0


class Off(NamedTuple):
    """How far the loops of a model are off: their number, the median of the error's size, and of
    the error itself.
    """

    metric: str
    engine: str
    device: str
    rows: int
    median: float
    lean: float


def off_by(cases: list[Case]) -> list[Off]:
    """How far the file's rates are off a model's loops, by engine and card."""
    loops = [case for case in cases if case.row.kind == "loop"]
    firsts = [case for case in loops if is_first_in_loop(case.row)]
    off: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for case, answer in zip(firsts, first_tokens(firsts), strict=True):
        off["ttft_s", case.row.engine, case.row.device].append((answer or inf) / case.row.value - 1)
    for case in loops:
        if case.row.metric == "tpot_s":
            error = answered(case) / case.row.value - 1
            off["tpot_s", case.row.engine, case.row.device].append(error)
    return [
        Off(*name, len(errors), round(_median(errors), 3), round(float(np.median(errors)), 3))
        for name, errors in sorted(off.items())
    ]


def keep(model: str, found: list[Off]) -> None:
    """The file of what fits without a model were off by, with this one."""
    said = json.loads(WITHOUT.read_text(encoding="utf-8")) if WITHOUT.exists() else {}
    said[model] = [one._asdict() for one in found]
    WITHOUT.write_text(json.dumps(said, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    for one in found:
        name = f"{one.metric} {one.engine} {one.device}"
        print(f"{name}: {one.rows} rows, {one.median:.1%}, lean {one.lean:+.1%}")


def _median(errors: Any) -> float:
    return float(np.median(np.abs(errors)))


def _table(
    found: Data,
    every: Columns,
    listed: list[Parameter],
    values: Any,
    errors: dict[str, float],
) -> Any:
    """The data file; errors that are not given stay as they are."""
    table = json.loads(TARGET.read_text(encoding="utf-8"))
    factors: dict[str, dict[str, float]] = {}
    types: dict[str, dict[str, float]] = {"dense": {}, "experts": {}}
    for p, value in zip(listed, values, strict=True):
        figure = float(f"{np.exp(value):.4g}")
        if p.column.endswith("_type"):
            types[p.column.removesuffix("_type")][p.trait] = figure
        elif p.column and abs(figure - 1) > 0.002:
            factors.setdefault(f"{p.column} {p.trait}", {})[p.rate] = figure
    for kinds in types.values():
        if BLOCKS in kinds:
            kinds[BLOCKS] = float(f"{kinds[BLOCKS] * kinds.get(FP8, 1.0):.4g}")
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
        "errors": errors or table["errors"],
        "measured": {
            f"{engine} on {family}": count
            for (engine, family), count in sorted(
                Counter(zip(every.engine.tolist(), every.family.tolist(), strict=True)).items()
            )
        },
    }


def errors(every: Columns, near: dict[Key, float]) -> dict[str, float]:
    """Half widths of the bands: what nine of ten rows of a model that a fit never saw keep to.

    Each model counts as one, however many rows it has: the next one is not like the one that was
    measured most.
    """
    answers = left_out(every, near)
    seen = ~np.isnan(answers)
    off = np.abs(np.log(answers[seen] / every.answer[seen]))
    part = taken(every, seen)
    speaks = part.metric != "ttft_s"
    found = {}
    for name, mask in (("dense", ~part.mixture), ("mixture", part.mixture)):
        found[name] = _half_width(off, part.model, mask & speaks)
    return found


def _half_width(off: Any, model: Any, mask: Any) -> float:
    """The logarithms' quantile, each model's rows weighing one together, as a relative width."""
    rows = Counter(model[mask].tolist())
    order = np.argsort(off[mask])
    weight = np.array([1 / rows[name] for name in model[mask]])[order]
    reached = np.cumsum(weight) / weight.sum()
    place = int(np.searchsorted(reached, ERROR_SHARE))
    return float(f"{np.expm1(off[mask][order][place]):.2g}")


if __name__ == "__main__":
    raise SystemExit(main())
