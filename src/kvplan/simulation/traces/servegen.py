"""Summaries of a fleet as ServeGen publishes them: rates by window, arrivals and lengths by client.

    {workload: {"window_s", "fleet_rate_rps": [...], "top": [{"rows": [[start s, rate, CV,
     "Gamma" | "Weibull", shape, scale], …], "length_percentiles_0_100": {start s: {...}}}]}}

Traffic is drawn from it: the busiest clients by their own intervals, the rest of the fleet as
Poisson arrivals, lengths by the percentiles (alibaba/ServeGen f891d118).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kvplan.core.errors import BadFile, UnknownName
from kvplan.simulation.traces.base import Reading
from kvplan.simulation.traces.columns import Columns

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NAME = "servegen"
REQUESTS = 10_000  # where no number is asked for
MOST_IN_A_WINDOW = 2_000_000
LENGTHS = "length_percentiles_0_100"


def claims(document: Any) -> bool:
    """By the fleet's rate in each workload."""
    return isinstance(document, dict) and bool(document) and all(
        isinstance(one, dict) and "fleet_rate_rps" in one for one in document.values()
    )  # fmt: skip


def draw(document: Mapping[str, Any], columns: Columns, reading: Reading) -> None:
    """Requests of one workload from its first window on.

    Raises:
        UnknownName: a workload that is not there.
        BadFile: a summary whose parts are not what they should be.
    """
    import numpy as np

    names = list(document)
    name = reading.workload or names[0]
    if name not in document:
        raise UnknownName("workload", name[:60], names[:20])
    wanted, rng = reading.requests or REQUESTS, np.random.default_rng(reading.seed)
    columns.is_drawn = True
    columns.note(f"Drawn from the summary of {name}, seed {reading.seed}.")
    try:
        fleet = _Fleet(document[name], reading.scale)
        for window in range(fleet.num_windows):
            for at, prompt, output in fleet.window(window, rng):
                columns.add(arrival_s=at, prompt_tokens=prompt, output_tokens=output)
                if len(columns) >= wanted:
                    return
    except (KeyError, TypeError, IndexError, ValueError, AttributeError, OverflowError) as error:
        raise BadFile(
            f"The summary of {name[:60]} is not complete ({type(error).__name__}: {error})."[:300]
        ) from None


class _Fleet:
    """A workload's clients; lengths of one that has none are those of the others."""

    def __init__(self, summary: Mapping[str, Any], scale: float) -> None:
        self.window_s = float(summary["window_s"])
        self.rates = [float(rate) * scale for rate in summary["fleet_rate_rps"]]
        self.clients = [_Client(one, scale) for one in summary["top"]]
        self.known = [client for client in self.clients if client.lengths]
        if not self.known or not self.window_s > 0:
            raise KeyError(LENGTHS)

    @property
    def num_windows(self) -> int:
        return len(self.rates)

    def window(self, index: int, rng: np.random.Generator) -> Iterator[tuple[float, int, int]]:
        """The requests of a window in order."""
        import numpy as np

        start = index * self.window_s
        times: list[Any] = []
        lengths: list[Any] = []
        left = self.rates[index]
        for client in (*self.clients, None):
            rate = max(0.0, left) if client is None else client.rate(start)
            left -= rate
            times.append(start + self._arrivals(client, start, rate, rng))
            lengths.append(self._lengths(client, start, len(times[-1]), rng))
        at, drawn = np.concatenate(times), np.concatenate(lengths, axis=1)
        for place in np.argsort(at, kind="stable"):
            yield float(at[place]), int(drawn[0, place]), int(drawn[1, place])

    def _arrivals(
        self, client: _Client | None, start: float, rate: float, rng: np.random.Generator
    ) -> NDArray[np.float64]:
        """Times inside of a window; Poisson where no client is named."""
        import numpy as np

        expected = rate * self.window_s
        if not 0 <= expected <= MOST_IN_A_WINDOW:
            raise ValueError(f"a rate of {rate:g} requests/s")
        if client is None:
            return rng.uniform(0, self.window_s, rng.poisson(expected))
        if not rate:
            return np.empty(0)
        count, end = int(expected) + 16, 0.0
        parts: list[Any] = []
        while end < self.window_s:
            parts.append(end + np.cumsum(client.intervals(start, count, rng)))
            end = float(parts[-1][-1])
            if len(parts) * count > 2 * MOST_IN_A_WINDOW:
                raise ValueError(f"intervals that fill no window of {self.window_s:g} s")
        at = np.concatenate(parts)
        return at[at < self.window_s]

    def _lengths(
        self, client: _Client | None, start: float, count: int, rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """A row of prompts and one of answers; those of any known client where none is its own."""
        if client is not None and client.lengths:
            return client.drawn(start, count, rng)
        import numpy as np

        chosen = rng.integers(0, len(self.known), count)
        lengths = np.ones((2, count), np.int64)
        for place, other in enumerate(self.known):
            mask = chosen == place
            lengths[:, mask] = other.drawn(start, int(mask.sum()), rng)
        return lengths


class _Client:
    """One client's windows and percentiles."""

    def __init__(self, one: Mapping[str, Any], scale: float) -> None:
        self.rows: dict[float, Sequence[Any]] = {float(row[0]): row for row in one["rows"]}
        self.scale = scale
        self.lengths = sorted((float(at), table) for at, table in one.get(LENGTHS, {}).items())

    def rate(self, start: float) -> float:
        """Requests a second; none in a window that has no row."""
        row = self.rows.get(start)
        return 0.0 if row is None else float(row[1]) * self.scale

    def intervals(self, start: float, count: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Between arrivals, of the shape that was fitted, and of the mean that the rate has."""
        row = self.rows[start]
        shape = float(row[4])
        if row[3] == "Gamma":
            drawn, mean = rng.gamma(shape, size=count), shape
        else:
            drawn, mean = rng.weibull(shape, count), math.gamma(1 + 1 / shape)
        return drawn / (mean * self.rate(start))

    def drawn(self, start: float, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Prompts and answers by the percentiles that were last published."""
        import numpy as np

        before = [table for at, table in self.lengths if at <= start]
        table = before[-1] if before else self.lengths[0][1]
        columns = np.array([table["input_tokens"], table["output_tokens"]], float)
        last = columns.shape[1] - 1
        at = rng.uniform(0, last, (2, count))
        drawn = [np.interp(row, range(last + 1), values)
                 for row, values in zip(at, columns, strict=True)]  # fmt: skip
        return np.maximum(1, np.rint(drawn)).astype(np.int64)
