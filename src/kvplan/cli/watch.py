"""``kvplan explain URL --watch``: a server's cache in the terminal, read again and again.

usage    █▇▇▆▇███   93 %
waiting  ▁▁▂▃▅▇██   12
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

import typer

from kvplan.core.errors import BadValue, SourceUnreachable
from kvplan.logs.metrics.reading import Reading
from kvplan.logs.metrics.source import scrape
from kvplan.logs.metrics.trend import Moment, Trend, sparkline

if TYPE_CHECKING:
    from rich.table import Table

LEAST_INTERVAL_S: Final = 0.2
MOST_INTERVAL_S: Final = 86_400.0
MOST_COUNT: Final = 10_000_000


def _share(value: float) -> str:
    return f"{value:.1%}"


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _rate(value: float) -> str:
    return f"{value:,.1f} /s"


# Name, figure, the value of a full bar (None: the largest seen), how it is written.
ROWS: Final[tuple[tuple[str, str, float | None, Callable[[float], str]], ...]] = (
    ("cache in use", "kv_usage", 1.0, _share),
    ("window in use", "window_usage", 1.0, _share),
    ("states in use", "state_usage", 1.0, _share),
    ("tokens in use", "used_tokens", None, _count),
    ("tokens reserved", "reserved_tokens", None, _count),
    ("hits of the interval", "hit_rate", 1.0, _share),
    ("requests running", "running_requests", None, _count),
    ("requests waiting", "waiting_requests", None, _count),
    ("preemptions", "preemptions", None, _rate),
    ("tokens evicted", "evicted_tokens", None, _rate),
    ("prompt tokens", "prompt_tokens", None, _rate),
    ("tokens generated", "generation_tokens", None, _rate),
)


def watch(source: str, *, interval_s: float, count: int | None, as_json: bool) -> int:
    """Read a server, or a dump that is written again, until ``count`` readings are shown.

    Raises:
        BadValue: an interval or a count that is none.
        SourceUnreachable: it does not answer.
        BadFile: it is no scrape.
    """
    if not LEAST_INTERVAL_S <= interval_s <= MOST_INTERVAL_S:
        raise BadValue(f"An interval is {LEAST_INTERVAL_S} to {MOST_INTERVAL_S:,.0f} seconds.")
    if count is not None and not 1 <= count <= MOST_COUNT:
        raise BadValue(f"A count is 1 to {MOST_COUNT:,} readings.")
    trend = Trend()
    moments = _moments(source, trend, interval_s, count)
    try:
        if as_json:
            for moment in moments:
                typer.echo(json.dumps(line_of(moment), ensure_ascii=False))
        else:
            _live(source, trend, moments)
    except KeyboardInterrupt:
        return 130
    return 0


def _moments(source: str, trend: Trend, interval_s: float, count: int | None) -> Iterator[Moment]:
    """Readings, an interval apart however long one takes."""
    due, taken = time.monotonic(), 0
    while count is None or taken < count:
        if taken:
            due = max(due + interval_s, time.monotonic())
            time.sleep(max(0.0, due - time.monotonic()))
        taken += 1
        try:
            reading = scrape(source)
        except SourceUnreachable:
            if not trend.moments:
                raise
            continue  # a server that starts again answers a later reading
        yield trend.add(reading, time.monotonic())


def _live(source: str, trend: Trend, moments: Iterator[Moment]) -> None:
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(), auto_refresh=False) as live:
        for moment in moments:
            live.update(screen(source, trend, moment), refresh=True)


def screen(source: str, trend: Trend, moment: Moment) -> Table:
    """What is shown: a line a figure, its last values as bars, and the newest."""
    from rich.table import Table
    from rich.text import Text

    reading = moment.reading
    table = Table(title=Text(_title(source, reading)), title_justify="left", box=None)
    for heading in ("", f"last {len(trend.moments):,} readings", "now"):
        table.add_column(heading, justify="right" if heading == "now" else "left", no_wrap=True)
    for name, figure, top, written in ROWS:
        values = trend.values(figure)
        if any(value is not None for value in values):
            last = values[-1]
            now = written(last) if last is not None else "–"
            table.add_row(name, Text(sparkline(values, top)), now)
    for name, words in _since_start(reading):
        table.add_row(name, "", Text(words))
    return table


def _title(source: str, reading: Reading) -> str:
    """Who is watched: printable characters alone, as names are a stranger's."""
    said = f"{reading.exporter.engine}  {reading.model or ''}  {source}"
    return "".join(c for c in said if c.isprintable())[:160]


def _since_start(reading: Reading) -> Iterator[tuple[str, str]]:
    """What counters and the pool say of the whole run."""
    if (rate := reading.hit_rate) is not None:
        yield "hits since the start", _share(rate)
    if (count := reading.get("preemptions")) is not None:
        yield "preemptions since the start", _count(count)
    tokens = reading.pool("kv_tokens") or reading.get("kv_tokens")
    if tokens:
        yield "tokens of the pool", _count(tokens)


def line_of(moment: Moment) -> dict[str, object]:
    """A reading as a line of JSON: gauges, counters, and the rates since the one before."""
    reading = moment.reading
    return {
        "engine": reading.exporter.engine,
        "model": reading.model,
        "interval_s": round(moment.seconds, 3),
        "figures": dict(reading.figures),
        "hit_rate": reading.hit_rate,
        "since": {"hit_rate": moment.hit_rate, **moment.since},
    }
