"""What a sweep varies."""

from __future__ import annotations

from typing import Any

import pytest

from kvplan.core.errors import BadValue
from kvplan.simulation.axes import parse_axis, points


@pytest.mark.parametrize(
    ("text", "name", "values"),
    [
        ("rate=1:4", "rate", (1.0, 2.0, 3.0, 4.0)),
        ("rate=0.5:1:0.25", "rate", (0.5, 0.75, 1.0)),
        ("rate=0.1:0.3:0.1", "rate", (0.1, 0.2, 0.3)),
        ("concurrency=1,4,16,4", "concurrency", (1, 4, 16)),
        ("gpu=h100-sxm-80gb,l40s", "gpu", ("h100-sxm-80gb", "l40s")),
        ("pool=10GiB,20GiB", "kv_pool", ("10GiB", "20GiB")),
        ("prompt=512:2048:512", "prompt", ("512", "1024", "1536", "2048")),
        ("prompt=lognormal:1000,0.8;uniform:1-9", "prompt", ("lognormal:1000,0.8", "uniform:1-9")),
    ],
)
def test_an_axis(text: str, name: str, values: tuple[Any, ...]) -> None:
    assert (name, values) == parse_axis(text)


@pytest.mark.parametrize(
    "text", ["rate", "colour=1:2", "rate=", "rate=a,b", "rate=5:1", "rate=1:2:0", "rate=0:1e12"]
)
def test_what_varies_nothing_is_told(text: str) -> None:
    with pytest.raises(BadValue, match="--sweep"):
        parse_axis(text)


def test_several_axes_are_every_combination() -> None:
    found = points([parse_axis("rate=1,2"), parse_axis("gpu=a,b")])

    assert [(1.0, "a"), (1.0, "b"), (2.0, "a"), (2.0, "b")] == [tuple(p.values()) for p in found]


def test_a_name_is_swept_once() -> None:
    with pytest.raises(BadValue, match="each can be swept once"):
        points([parse_axis("rate=1,2"), parse_axis("rate=3,4")])


def test_points_are_bounded() -> None:
    with pytest.raises(BadValue, match="1,000,000 points"):
        points([parse_axis("rate=1:1000"), parse_axis("requests=1:1000")])
