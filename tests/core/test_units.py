"""Sizes, lengths and rates as people write them."""

from __future__ import annotations

import pytest

from kvplan.core import units
from kvplan.core.errors import BadValue

SIZES = [
    ("24GiB", 24 << 30),
    ("80GB", 80 * 10**9),
    ("81559MiB", 81_559 << 20),
    ("14.96 GiB", 16_063_177_687),
    ("0B", 0),
    ("1.5TiB", 3 << 39),
    ("1,024MiB", 1 << 30),
    (".5KiB", 512),
    (4096, 4096),
]
LENGTHS = [("4096", 4096), ("4k", 4096), ("32K", 32768), ("1m", 1 << 20), ("0.5k", 512), (7, 7)]
RATES = [("2000GB/s", 2 * 10**12), ("3.35TB/s", 3_350_000_000_000), ("1008 GB/s", 1_008 * 10**9)]
NO_SIZES = [
    "",
    "GiB",
    "-1GiB",
    "nan",
    "inf GiB",
    "1e9GiB",
    "80",
    "80 bananas",
    "9" * 40,
    "2000000TiB",
]
NO_LENGTHS = ["", "-1", "k", "1.5", "0.0001k", "nan", "4kk", "1e3", "9" * 17 + "m", True]
SHOWN = [(0, "0 B"), (131_072, "131,072 B"), (4 << 30, "4 GiB"), (60_870_352_896, "56.69 GiB")]


@pytest.mark.parametrize(("text", "expected"), SIZES)
def test_sizes(text: str | int, expected: int) -> None:
    """GiB is 2^30, GB is 10^9, and both are spelled."""
    assert expected == units.parse_bytes(text)


@pytest.mark.parametrize(("text", "expected"), LENGTHS)
def test_lengths(text: str | int, expected: int) -> None:
    """K is 1,024 tokens and m is 1,048,576."""
    assert expected == units.parse_tokens(text)


@pytest.mark.parametrize(("text", "expected"), RATES)
def test_rates(text: str, expected: int) -> None:
    """A rate is a size a second."""
    assert expected == units.parse_bandwidth(text)


@pytest.mark.parametrize("text", NO_SIZES)
def test_no_size(text: str) -> None:
    """What is no size is refused, a number without a unit too."""
    with pytest.raises(BadValue):
        units.parse_bytes(text)


@pytest.mark.parametrize("text", NO_LENGTHS)
def test_no_length(text: str) -> None:
    """What is no whole number of tokens is refused."""
    with pytest.raises(BadValue):
        units.parse_tokens(text)


@pytest.mark.parametrize(("size", "expected"), SHOWN)
def test_shown(size: int, expected: str) -> None:
    """A size for people names its unit."""
    assert expected == units.format_bytes(size)


def test_roundings() -> None:
    """17 tokens take two blocks of 16, that is 32 slots."""
    assert (2, 32) == (units.ceil_div(17, 16), units.round_up(17, 16))
