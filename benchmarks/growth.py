"""Milliseconds a token against the length of the context, on the real llama.cpp.

One slot, one thread. Each prompt of exact length is computed once and its slot saved; then, round
after round, every length is restored and some tokens are generated at temperature 0. The least mean
of a few tokens in a row, by the server's own clock, over all rounds is the measurement: other work
on the machine only makes a token slower, and a clock read late makes one gap longer and the next as
much shorter.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import httpx

import kvplan
from kvplan.measuring.calibration import Point, calibrate
from kvplan.measuring.embedded.server import serving
from kvplan.measuring.embedded.settings import Settings
from kvplan.planning.speed.measured import Decode

LENGTHS: Final = (88, 512, 1024, 2048, 3072, 4096, 6144, 8192)
CALIBRATED_ON: Final = (88, 8192)  # weights by the one, cache by the other: the rest is predicted
TOKENS: Final = 24
ROW: Final = 4  # tokens in a row
WORDS: Final = (1000, 40_000)  # ids of ordinary tokens of SmolLM2's vocabulary
TIMEOUT_S: Final = 300.0
ALONE: Final = {"Connection": "close"}  # the server may hang up on a connection that waits


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
    rounds: int = 8,
) -> Growth:
    """A variant measured at every length; the longest prompt and what follows it fit in it."""
    ids = random.Random(0).choices(range(*WORDS), k=max(lengths))
    prompts = [ids[: length - TOKENS] for length in sorted(lengths)]
    with TemporaryDirectory() as folder:
        settings = Settings(
            model=str(weights),
            context_tokens=-(-max(lengths) // 256) * 256,
            cache_type=variant.keys,
            cache_type_v=variant.values,
            flash_attention=variant.flash_attention,
            slot_folder=folder,
        )
        with (
            serving(settings) as served,
            httpx.Client(base_url=served.address, timeout=TIMEOUT_S, trust_env=False) as client,
        ):
            least = _least(client, prompts, rounds)
    points = tuple(
        Point(1, len(prompt) + TOKENS / 2, seconds)  # the middle of what is generated
        for prompt, seconds in zip(prompts, least, strict=True)
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


def _least(client: httpx.Client, prompts: Sequence[list[int]], rounds: int) -> list[float]:
    """Of each prompt the fastest tokens in a row of all rounds."""
    for prompt in prompts:  # the shorter one before is its beginning
        _generate(client, prompt, 1)
        _slot(client, "save", len(prompt))
    runs: list[list[float]] = [[] for _ in prompts]
    for _ in range(rounds):
        for prompt, found in zip(prompts, runs, strict=True):
            _slot(client, "restore", len(prompt))
            gaps = _gaps(client, prompt)
            found.append(min(sum(gaps[i : i + ROW]) / ROW for i in range(len(gaps) - ROW + 1)))
    return [min(found) for found in runs]


def _slot(client: httpx.Client, action: str, length: int) -> None:
    client.post(
        f"/slots/0?action={action}", json={"filename": f"{length}.slot"}, headers=ALONE
    ).raise_for_status()


def _gaps(client: httpx.Client, ids: list[int]) -> list[float]:
    """Seconds between the generated tokens, by the server's clock."""
    clock = _generate(client, ids, TOKENS)
    gaps = [later - earlier for earlier, later in pairwise(clock) if later > earlier]
    if len(gaps) < TOKENS // 2:
        raise AssertionError(f"{len(gaps)} gaps of {TOKENS} tokens: the server sends no timings")
    return gaps


def _generate(client: httpx.Client, ids: list[int], tokens: int) -> list[float]:
    """The server's clock at each token."""
    asked = {
        "prompt": ids,
        "n_predict": tokens,
        "temperature": 0,
        "ignore_eos": True,
        "stream": True,
        "cache_prompt": True,
        "timings_per_token": True,
    }
    clock: list[float] = []
    with client.stream("POST", "/completion", json=asked, headers=ALONE) as response:
        response.raise_for_status()
        for line in response.iter_lines():
            if line.startswith("data: {"):
                timings: dict[str, Any] = json.loads(line[6:]).get("timings") or {}
                clock.append(float(timings.get("predicted_ms", 0)) / 1e3)
    return clock
