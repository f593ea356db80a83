"""Between readings: rates, hits of the interval, a server that started again; bars."""

from __future__ import annotations

from kvplan.logs.metrics.reading import Reading, read_metrics
from kvplan.logs.metrics.trend import MOST_READINGS, Trend, sparkline


def reading(hits: int, queries: int, usage: float = 0.5) -> Reading:
    found = read_metrics(
        [
            "vllm:num_requests_running 1",
            f"vllm:kv_cache_usage_perc {usage}",
            f"vllm:prefix_cache_hits_total {hits}",
            f"vllm:prefix_cache_queries_total {queries}",
        ]
    )
    assert found is not None
    return found


def test_hits_of_the_interval() -> None:
    """What was found since the reading before, not since the start."""
    trend = Trend()
    trend.add(reading(900, 1000), 0.0)
    moment = trend.add(reading(910, 1100), 10.0)

    assert (0.1, 1.0) == (moment.hit_rate, moment.rate("prefix_hit_tokens"))
    assert [None, 0.1] == trend.values("hit_rate")


def test_a_server_that_started_again() -> None:
    """Counters begin anew: what they say is of the interval."""
    trend = Trend()
    trend.add(reading(900, 1000), 0.0)

    assert 0.5 == trend.add(reading(50, 100), 10.0).hit_rate


def test_nothing_asked_for() -> None:
    """No rate where nothing was looked for."""
    trend = Trend()
    trend.add(reading(900, 1000), 0.0)

    assert trend.add(reading(900, 1000), 10.0).hit_rate is None


def test_readings_are_bounded() -> None:
    """A watch of weeks keeps the last."""
    trend = Trend()
    for n in range(MOST_READINGS + 5):
        trend.add(reading(1, 2, n / 1000), float(n))

    assert MOST_READINGS == len(trend.values("kv_usage"))


def test_bars() -> None:
    """From nothing to the top; blank where nothing is known."""
    assert "▁▅█ █" == sparkline([0.0, 0.5, 1.0, None, 2.0], top=1.0)
    assert "▁▁" == sparkline([0.0, 0.0])
    assert 10 == len(sparkline([1.0] * 100, width=10))
