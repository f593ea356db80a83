"""Milliseconds a token against the length of the context, on the real llama.cpp.

One slot, one thread. A prompt of exact length is there (its own prefix reused from the shorter one
before), then some tokens are generated at temperature 0; their median gap by the server's own clock
is a run, and the least of the runs is the measurement, since other work only makes a run slower.
"""

from __future__ import annotations

import json
import random
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import httpx

import kvplan
from kvplan.measuring.calibration import Decode, Point, calibrate
from kvplan.measuring.embedded.server import serving
from kvplan.measuring.embedded.settings import Settings

LENGTHS: Final = (88, 512, 1024, 2048, 3072, 4096, 6144, 8192)
CALIBRATED_ON: Final = (512, 6144)  # the others are predicted
TOKENS: Final = 24
WORDS: Final = (1000, 40_000)  # ids of ordinary tokens of SmolLM2's vocabulary
TIMEOUT_S: Final = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """Formats of keys and values, and whether attention is the fused one."""

    keys: str
    values: str
    flash_attention: bool

    @property
    def name(self) -> str:
        """As in a legend."""
        formats = self.keys if self.keys == self.values else f"{self.keys}, values {self.values}"
        return f"{formats}, flash attention {'on' if self.flash_attention else 'off'}"


# A quantised V needs flash attention (llama.cpp, src/llama-context.cpp, b11549), so that without it
# the keys alone are q8_0.
VARIANTS: Final = (
    Variant(keys="f16", values="f16", flash_attention=True),
    Variant(keys="f16", values="f16", flash_attention=False),
    Variant(keys="q8_0", values="q8_0", flash_attention=True),
    Variant(keys="q8_0", values="f16", flash_attention=False),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """A variant's measured steps, the bound of each in seconds, and what two of them predict."""

    variant: Variant
    points: tuple[Point, ...]
    bounds: tuple[float, ...]
    estimate: Decode
    calibrated_on: tuple[int, ...]

    def predicted(self) -> Iterator[tuple[Point, float]]:
        """The points that were not used to calibrate, with what is predicted of them."""
        for index, point in enumerate(self.points):
            if index not in self.calibrated_on:
                yield point, self.estimate.seconds(point.batch, point.context)

    @property
    def worst(self) -> float:
        """The largest relative error of what is predicted."""
        return max(abs(said / point.seconds - 1) for point, said in self.predicted())


def grow(
    weights: Path,
    variant: Variant,
    bandwidth: int,
    *,
    lengths: Sequence[int] = LENGTHS,
    calibrated_on: Sequence[int] = CALIBRATED_ON,
    repeats: int = 5,
) -> Growth:
    """A variant measured at every length; the longest prompt and what follows it fit in it."""
    settings = Settings(
        model=str(weights),
        context_tokens=-(-max(lengths) // 256) * 256,
        cache_type=variant.keys,
        cache_type_v=variant.values,
        flash_attention=variant.flash_attention,
    )
    ids = random.Random(0).choices(range(*WORDS), k=max(lengths))
    with (
        serving(settings) as served,
        httpx.Client(base_url=served.address, timeout=TIMEOUT_S, trust_env=False) as client,
    ):
        points = tuple(
            _point(client, ids[: length - TOKENS], repeats) for length in sorted(lengths)
        )
    used = tuple(sorted(lengths).index(length) for length in calibrated_on)
    return Growth(
        variant=variant,
        points=points,
        bounds=tuple(bound(weights, variant, bandwidth, int(p.context)) for p in points),
        estimate=calibrate([points[index] for index in used]),
        calibrated_on=used,
    )


def bound(weights: Path, variant: Variant, bandwidth: int, context: int) -> float:
    """Weights and cache that a step reads, over the bandwidth, as ``fit`` says it.

    Keys and values are as wide as each other here: of two formats each reads half of its own cache.
    """
    each = [_bound(weights, name, bandwidth, context) for name in (variant.keys, variant.values)]
    return sum(each) / 2


def _bound(weights: Path, kv_dtype: str, bandwidth: int, context: int) -> float:
    speed = kvplan.fit(
        weights,
        engine="none",
        gpu_memory="24GiB",
        bandwidth=bandwidth,
        context=context,
        concurrency=1,
        kv_dtype=kv_dtype,
    ).speed
    assert speed is not None
    return speed.step_s


def _point(client: httpx.Client, ids: list[int], repeats: int) -> Point:
    """The least of the runs; the context is that of the middle of the generated tokens."""
    runs = [statistics.median(_gaps(client, ids)) for _ in range(repeats)]
    return Point(1, len(ids) + TOKENS / 2, min(runs))


def _gaps(client: httpx.Client, ids: list[int]) -> list[float]:
    """Seconds between the generated tokens, by the server's clock."""
    asked = {
        "prompt": ids,
        "n_predict": TOKENS,
        "temperature": 0,
        "ignore_eos": True,
        "stream": True,
        "cache_prompt": True,
        "timings_per_token": True,
    }
    clock: list[float] = []
    alone = {"Connection": "close"}  # the server may hang up on a connection that waits
    with client.stream("POST", "/completion", json=asked, headers=alone) as response:
        response.raise_for_status()
        for line in response.iter_lines():
            if line.startswith("data: {"):
                timings: dict[str, Any] = json.loads(line[6:]).get("timings") or {}
                clock.append(float(timings.get("predicted_ms", 0)) / 1e3)
    gaps = [later - earlier for earlier, later in pairwise(clock) if later > earlier]
    if len(gaps) < TOKENS // 2:
        raise AssertionError(f"{len(gaps)} gaps of {TOKENS} tokens: the server sends no timings")
    return gaps
