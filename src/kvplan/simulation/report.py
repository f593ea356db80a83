"""What an outcome says: the contract's figures of one run, and of several seeds with confidence.

    ttft    first token − sent          queue   first scheduling − sent
    tpot    (end − first token) / (answer − 1), of answers longer than a token
    e2e     end − sent

Requests that were refused or gave up are in none of them. Over seeds a figure is the mean of the
runs, its interval Student's at 95%.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kvplan.simulation.outcome import Outcome
from kvplan.simulation.traffic import Traffic

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

QUANTILES: Final = {"p50": 50, "p90": 90, "p95": 95, "p99": 99}
LEVEL: Final = 0.95
# Student's t at 0.975 by degrees of freedom from 1 on; beyond them the normal's.
STUDENT: Final = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
NORMAL: Final = 1.96


def spread(values: NDArray[np.float64]) -> dict[str, float | None]:
    """Mean and quantiles; None of nothing."""
    import numpy as np

    if not len(values):
        return {"mean": None, **dict.fromkeys(QUANTILES)}
    found = np.percentile(values, list(QUANTILES.values()))
    return {
        "mean": float(values.mean()),
        **dict(zip(QUANTILES, map(float, found), strict=True)),
    }


def tpot_s(outcome: Outcome, traffic: Traffic) -> NDArray[np.float64]:
    """Of each request that ended with more than a token."""
    import numpy as np

    more = (traffic.output_tokens > 1) & ~np.isnan(outcome.finished_s)
    lasted = outcome.finished_s[more] - outcome.first_token_s[more]
    found: NDArray[np.float64] = lasted / (traffic.output_tokens[more] - 1)
    return found


def figures(outcome: Outcome, traffic: Traffic) -> dict[str, Any]:
    """The contract's keys of one run, but for the speed of simulating it."""
    import numpy as np

    ended = ~np.isnan(outcome.finished_s)
    sent = outcome.arrived_s[ended]
    preempted = int((outcome.preemptions > 0).sum())
    usable = max(outcome.num_blocks, 1)
    return {
        "requests": len(traffic),
        "finished": int(ended.sum()),
        "duration_s": outcome.duration_s,
        "ttft_s": spread(outcome.first_token_s[ended] - sent),
        "tpot_s": spread(tpot_s(outcome, traffic)),
        "e2e_s": spread(outcome.finished_s[ended] - sent),
        "queue_s": spread(outcome.admitted_s[ended] - sent),
        "output_tokens_per_s": _rate(int(traffic.output_tokens[ended].sum()), outcome.duration_s),
        "requests_per_s": _rate(int(ended.sum()), outcome.duration_s),
        "prefix": {
            "queried_tokens": outcome.queried_tokens,
            "hit_tokens": int(outcome.hit_tokens.sum()),
            "hit_rate": outcome.hit_tokens.sum() / max(outcome.queried_tokens, 1),
        },
        "preemptions": int(outcome.preemptions.sum()),
        "preempted_requests": preempted,
        "preemption_rate": preempted / max(int((~outcome.rejected).sum()), 1),
        "recomputed_tokens": outcome.recomputed_tokens,
        "evicted_blocks": outcome.evicted_blocks,
        "kv_usage": {
            "mean": outcome.mean_used_blocks / usable,
            "peak": outcome.peak_used_blocks / usable,
        },
        "running": {"mean": outcome.mean_running, "max": outcome.max_running},
        "waiting": {"mean": outcome.mean_waiting, "max": outcome.max_waiting},
        "rejected": int(outcome.rejected.sum()),
        "failed": int((~ended & ~outcome.rejected).sum()),
    }


def _rate(count: int, seconds: float) -> float:
    return count / seconds if seconds > 0 else 0.0


def averaged(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The mean of every figure over runs; a count is rounded."""
    return {key: _mean([run[key] for run in runs]) for key in runs[0]}


def _mean(values: Sequence[Any]) -> Any:
    if isinstance(values[0], Mapping):
        return averaged(values)
    known = [value for value in values if value is not None]
    if not known:
        return None
    mean = math.fsum(known) / len(known)
    return round(mean) if all(isinstance(value, int) for value in known) else mean


def intervals(runs: Sequence[Mapping[str, Any]]) -> dict[str, list[float]]:
    """Between what the mean of each figure that varies lies, by its path: ``ttft_s.p50``."""
    found = {}
    for path, first in _leaves(runs[0]):
        values = [value for value in (_at(run, path) for run in runs) if value is not None]
        if len(values) < 2 or first is None or min(values) == max(values):
            continue
        mean = math.fsum(values) / len(values)
        variance = math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
        degrees = len(values) - 1
        t = STUDENT[degrees - 1] if degrees <= len(STUDENT) else NORMAL
        half = t * math.sqrt(variance / len(values))
        found[path] = [mean - half, mean + half]
    return found


def _leaves(row: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in row.items():
        path = f"{above}.{key}" if above else key
        if isinstance(value, Mapping):
            yield from _leaves(value, path)
        else:
            yield path, value


def _at(row: Mapping[str, Any], path: str) -> Any:
    found: Any = row
    for key in path.split("."):
        found = found[key]
    return found
