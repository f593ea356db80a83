"""Lines of the text format, good and hostile."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvplan.logs.metrics.exposition import MAX_LINE, sample
from kvplan.logs.metrics.reading import read_metrics

GOOD = {
    "up 1": ("up", {}, 1.0),
    "  up 1 ": ("up", {}, 1.0),
    'a:b_total{x="1"} 2.5e+3 1700000000000': ("a_b", {"x": "1"}, 2500.0),
    'a{x="1",} 3': ("a", {"x": "1"}, 3.0),
    'a{ x = "1" , y="2" } 3': ("a", {"x": "1", "y": "2"}, 3.0),
    "a{} 3": ("a", {}, 3.0),
    r'a{x="q\"\\\n"} 3': ("a", {"x": 'q"\\\n'}, 3.0),
    'a{x="}{,="} 3 # {trace_id="1"} 0.5': ("a", {"x": "}{,="}, 3.0),
    "ray_vllm_x_total 1": ("vllm_x", {}, 1.0),
    "a -0.5": ("a", {}, -0.5),
}
BAD = (
    "", "# HELP a b", "$ curl http://localhost:8000/metrics", "a", "a{", 'a{x="1"', 'a{x="1} 2',
    "a{x=1} 2", "a NaN", "a +Inf", "a -Inf", "a 1e999", "a 1x", "a{x='1'} 2", "1a 2", "a " + "9" * 400,
    "a{" + 'x="1",' * 100_000 + "} 1",
)  # fmt: skip


@pytest.mark.parametrize("line", GOOD)
def test_a_sample(line: str) -> None:
    """Names in one spelling, labels unescaped, time stamps and exemplars passed over."""
    found = sample(line)

    assert found is not None
    assert GOOD[line] == (found.name, found.labels, found.value)


@pytest.mark.parametrize("line", BAD)
def test_no_sample(line: str) -> None:
    """What is none is passed over."""
    assert sample(line) is None


def test_long_lines() -> None:
    """A line longer than any is not searched."""
    assert sample("a" * (MAX_LINE + 1)) is None


@given(st.text(max_size=300))
def test_any_line(line: str) -> None:
    """No text is an error, and no value is without end."""
    found = sample(line)

    assert found is None or math.isfinite(found.value)


@given(st.lists(st.from_regex(r'vllm:[a-z_]{1,20}(\{[a-z]{1,3}="[^"]{0,9}"\})? -?[0-9e.]{1,12}')))
def test_any_scrape(lines: list[str]) -> None:
    """Series of any names and values."""
    read_metrics(["vllm:num_requests_running 1", *lines])
