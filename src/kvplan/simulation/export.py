"""Runs and sweeps as Parquet: a row a request, or a row a point."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from kvplan.core.errors import BadValue


def write_parquet(answer: Any, path: Path) -> None:
    """The requests of every run, or the points of a sweep.

    Raises:
        BadValue: an answer that has neither.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = getattr(answer, "rows", None)
    if rows is not None:
        table = pa.Table.from_pylist(rows())
    elif getattr(answer, "runs", None):
        table = pa.concat_tables([pa.table(_requests(run)) for run in answer.runs])
    else:
        raise BadValue("There are no requests to write.", "Write them of a simulation.")
    pq.write_table(table, path)


def _requests(run: Any) -> dict[str, Any]:
    """Columns of one run's requests; a time that never came is null."""
    outcome, traffic = run.outcome, run.traffic
    times = {
        name: _nullable(getattr(outcome, name))
        for name in ("arrived_s", "admitted_s", "first_token_s", "finished_s")
    }
    return {
        "seed": np.full(len(traffic), run.seed),
        "request": np.arange(len(traffic)),
        "prompt_tokens": traffic.prompt_tokens,
        "output_tokens": traffic.output_tokens,
        **times,
        "hit_tokens": outcome.hit_tokens,
        "preemptions": outcome.preemptions,
        "rejected": outcome.rejected,
    }


def _nullable(column: Any) -> Any:
    import pyarrow as pa

    return pa.array(column, from_pandas=True)
