"""Distributions: what is written is what is drawn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvplan.core.errors import BadFile, BadValue, KvplanError, SourceUnreachable
from kvplan.simulation.lengths import (
    Distribution,
    Empirical,
    Fixed,
    LogNormal,
    Uniform,
    parse_distribution,
    sample_tokens,
)
from tests.simulation.traces.files import TRACES

# mean, median, 99th percentile
CASES = {
    "800": (800, 800, 800),
    "4k": (4096, 4096, 4096),
    "uniform:800-1000": (900, 900, 998),
    "800-1000": (900, 900, 998),
    "uniform:1,4": (2.5, 2, 4),
    "lognormal:1000,0.5": (1000, 882.5, 2824),
    "lognormal:median=900,p99=6000": (1254, 900, 6000),
    "lognormal:mean=1000,sigma=0.5": (1000, 882.5, 2824),
    "lognormal:mean=1000,median=900": (1000, 900, 2622),
    "lognormal:mean=1000,p90=2000": (1000, 740.3, 4497),
    "normal:1000,200": (1000, 1000, 1465),
    "exponential:20": (20, 13.86, 92.1),
    "fixed:7": (7, 7, 7),
}


@pytest.mark.parametrize("text", CASES)
def test_mean_and_quantiles(text: str) -> None:
    """As the formula has them."""
    found = parse_distribution(text, "--prompt")

    assert CASES[text] == pytest.approx(
        (found.mean, found.quantile(0.5), found.quantile(0.99)), rel=0.002
    )


@pytest.mark.parametrize("text", CASES)
def test_samples_have_the_mean_and_quantiles(text: str) -> None:
    """Of many draws, and the same for the same seed."""
    found = parse_distribution(text, "--prompt")
    drawn = found.sample(np.random.default_rng(3), 40_000)
    again = found.sample(np.random.default_rng(3), 40_000)

    assert drawn.tolist() == again.tolist()
    assert drawn.mean() == pytest.approx(found.mean, rel=0.03)
    assert np.quantile(drawn, 0.9) == pytest.approx(found.quantile(0.9), rel=0.04)


def test_empirical(tmp_path: Path) -> None:
    """Numbers of a file, as often as they are there."""
    path = tmp_path / "lengths.txt"
    path.write_text("10\n10\n40\n\n100\n")
    found = parse_distribution(f"empirical:{path}", "--output")

    assert (40.0, 10.0, 100.0) == (found.mean, found.quantile(0.5), found.quantile(1))
    assert {10.0, 40.0, 100.0} == set(found.sample(np.random.default_rng(0), 200))


@pytest.mark.parametrize(("column", "mean"), [("prompt", 1155), ("output", 211)])
def test_a_column_of_a_trace(column: str, mean: int) -> None:
    """The lengths that real requests had."""
    found = parse_distribution(f"empirical:{TRACES / 'azure2023_conv.csv.gz'}#{column}", "--x")

    assert mean == round(found.mean)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is no distribution"),
        ("many", "is no distribution"),
        ("-5", "outside 0"),
        ("nan", "outside 0"),
        ("inf", "outside 0"),
        ("1e99", "outside 0"),
        ("uniform:9-2", "not above the second"),
        ("uniform:1.5-2", "whole numbers"),
        ("uniform:1", "is no distribution"),
        ("lognormal:1000", "is no distribution"),
        ("lognormal:0,1", "above 0"),
        ("lognormal:10,99", "Two of mean"),
        ("lognormal:mean=5", "Two of mean"),
        ("lognormal:mean=5,modus=3", "is no distribution"),
        ("lognormal:median=900,p99=60", "No lognormal"),
        ("lognormal:mean=1000,p99=9000000", "is no distribution"),
        ("poisson:5", "is no distribution"),
        ("uniform:1-2-3", "is no distribution"),
    ],
)
def test_wrong_spellings(text: str, said: str) -> None:
    """A sentence that names the flag, and the grammar."""
    with pytest.raises(BadValue) as raised:
        parse_distribution(text, "--prompt")

    assert said in str(raised.value)
    assert "--prompt" in str(raised.value)


def test_wrong_files(tmp_path: Path) -> None:
    """Neither numbers nor a trace."""
    path = tmp_path / "x.txt"
    path.write_text("1\ntwo\n")
    with pytest.raises(BadFile, match="Line 2"):
        parse_distribution(f"empirical:{path}", "--prompt")
    with pytest.raises(SourceUnreachable):
        parse_distribution("empirical:no/such/file", "--prompt")
    with pytest.raises(BadValue, match="There are #prompt and #output"):
        parse_distribution(f"empirical:{TRACES / 'azure2023_code.csv.gz'}#x", "--prompt")


DISTRIBUTIONS: st.SearchStrategy[Distribution] = st.one_of(
    st.builds(Fixed, st.floats(0, 1e6)),
    st.builds(lambda a, b: Uniform(min(a, b), max(a, b)), st.integers(0, 99), st.integers(0, 99)),
    st.builds(LogNormal, st.floats(-2, 12), st.floats(0, 3)),
    st.builds(
        lambda values: Empirical(tuple(values), "x"),
        st.lists(st.floats(0, 1e6), min_size=1, max_size=9),
    ),
)


@settings(deadline=None)
@given(DISTRIBUTIONS, st.integers(0, 9))
def test_samples_are_lengths(of: Distribution, seed: int) -> None:
    """Whole, one or more, bounded; quantiles never fall."""
    drawn = sample_tokens(of, np.random.default_rng(seed), 50)
    quantiles = [of.quantile(share / 10) for share in range(11)]

    assert drawn.min() >= 1
    assert drawn.max() <= 1 << 27
    assert sorted(quantiles) == quantiles


@settings(deadline=None)
@given(st.text("0123456789kuniform:-,.=lognpedx ", max_size=24))
def test_any_text(text: str) -> None:
    """Is a distribution, or a sentence."""
    try:
        found = parse_distribution(text, "--prompt")
    except KvplanError:
        return

    assert found.mean >= 0
