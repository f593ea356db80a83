"""What a sweep varies: ``rate=1:20``, ``prompt=512,2048``, ``gpu=h100,a100``.

a:b      1, 2 … b          a:b:step     by a step          a,b,c     these
several --sweep are every combination; lengths with commas of their own are parted by ;
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any, Final, NamedTuple

from kvplan.core.errors import BadValue

MOST_POINTS: Final = 10_000


class Axis(NamedTuple):
    """A name of the question and its values."""

    name: str
    values: tuple[Any, ...]


# What is swept, the keyword that it is, and how a value is read.
NAMES: Final[dict[str, tuple[str, Callable[[str], Any]]]] = {
    "rate": ("rate", float),
    "concurrency": ("concurrency", int),
    "replicas": ("replicas", int),
    "requests": ("requests", int),
    "prompt": ("prompt", str),
    "output": ("output", str),
    "pool": ("kv_pool", str),
    "gpu": ("gpu", str),
    "gpus": ("gpus", int),
    "router": ("router", str),
    "policy": ("policy", str),
    "cache": ("cache", str),
    "max-num-seqs": ("max_num_seqs", str),
    "max-num-batched-tokens": ("max_num_batched_tokens", str),
}


def parse_axis(text: str) -> Axis:
    """One ``--sweep``.

    Raises:
        BadValue: no such name, or values that cannot be read.
    """
    name, equals, said = text.partition("=")
    if name not in NAMES or not equals or not said:
        known = ", ".join(NAMES)
        raise BadValue(
            f"--sweep {text[:60]!r} varies nothing.",
            f"Write NAME=1:20 or NAME=a,b of {known}.",
        )
    keyword, read = NAMES[name]
    try:
        values = tuple(_span(said, read)) if _is_span(said) else tuple(map(read, _listed(said)))
    except (ValueError, OverflowError):
        raise BadValue(f"--sweep {text[:60]!r} has a value that is none of {name}.") from None
    return Axis(keyword, tuple(dict.fromkeys(values)))


def points(axes: Sequence[Axis]) -> list[dict[str, Any]]:
    """Every combination, the last axis varying fastest.

    Raises:
        BadValue: one name twice, or too many.
    """
    names = [axis.name for axis in axes]
    if len(set(names)) < len(names):
        raise BadValue(f"--sweep names {', '.join(names)}: each can be swept once.")
    count = math.prod(len(axis.values) for axis in axes)
    if count > MOST_POINTS:
        raise BadValue(f"That are {count:,} points, more than {MOST_POINTS:,}.")
    return [dict(zip(names, one, strict=True)) for one in product(*(a.values for a in axes))]


def _is_span(text: str) -> bool:
    parts = text.split(":")
    return len(parts) in (2, 3) and all(_is_number(part) for part in parts)


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _span(text: str, read: Callable[[str], Any]) -> Iterator[Any]:
    """From the first to the last, both among them."""
    first, last, step = (*map(float, text.split(":")), 1.0)[:3]
    if step <= 0 or last < first or (last - first) / step > MOST_POINTS:
        raise ValueError
    for place in range(math.floor((last - first) / step + 1e-9) + 1):
        value = first + place * step
        yield read(f"{value:.0f}" if value == int(value) else f"{value:.10g}")


def _listed(text: str) -> list[str]:
    parted = text.split(";") if ";" in text else text.split(",")
    return [part.strip() for part in parted if part.strip()]
