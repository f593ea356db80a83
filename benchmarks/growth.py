"""Milliseconds a token against the length of the context, on the real llama.cpp.

One slot, one thread. Each prompt of exact length is computed once and its slot saved; then, round
after round, every length is restored, and a token and many tokens are generated at temperature 0. A
token's time is the processor time of the server between the two, over the tokens between them: on a
machine with nothing else to do that is the time that passes, and on another waiting for a processor
does not count. The least of the rounds is taken, since other work only makes a token slower.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import httpx

import kvplan
from kvplan.core.measured import Decode
from kvplan.measuring.calibration import Point, calibrate
from kvplan.measuring.embedded.server import serving
from kvplan.measuring.embedded.settings import Settings

LENGTHS: Final = (88, 512, 1024, 2048, 3072, 4096, 6144, 8192)
CALIBRATED_ON: Final = (88, 8192)  # weights by the one, cache by the other: the rest is predicted
TOKENS: Final = 24
SETTLED_S: Final = 0.01  # a server that has answered still writes its log
WORDS: Final = (1000, 40_000)  # ids of ordinary tokens of SmolLM2's vocabulary
TIMEOUT_S: Final = 1800.0  # a prompt of 8k on a machine with other work
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
    """A variant's measured steps, and what two of them predict of the others."""

    variant: Variant
    points: tuple[Point, ...]
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
    *,
    lengths: Sequence[int] = LENGTHS,
    calibrated_on: Sequence[int] = CALIBRATED_ON,
    rounds: int = 8,
) -> Growth:
    """A variant measured at every length; the longest prompt and what follows it fit in it."""
    ids = random.Random(0).choices(range(*WORDS), k=max(lengths))
    prompts = [ids[: length - TOKENS - 1] for length in sorted(lengths)]
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
            least = _least(client, clock_of(served.pid), prompts, rounds)
    points = tuple(
        Point(1, len(prompt) + 1 + TOKENS / 2, seconds)  # the middle of what is generated
        for prompt, seconds in zip(prompts, least, strict=True)
    )
    used = tuple(sorted(lengths).index(length) for length in calibrated_on)
    return Growth(
        variant=variant,
        points=points,
        estimate=calibrate([points[index] for index in used]),
        calibrated_on=used,
    )


def bound(weights: Path, variant: Variant, bandwidth: int, context: float) -> float:
    """Weights and cache that a step reads, over the bandwidth, as ``fit`` says it.

    Keys and values are as wide as each other here: of two formats each reads half of its own cache.
    """
    each = [
        _bound(weights, name, bandwidth, int(context)) for name in (variant.keys, variant.values)
    ]
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


def _least(
    client: httpx.Client, clock: int, prompts: Sequence[list[int]], rounds: int
) -> list[float]:
    """Of each prompt the seconds of a token, by the least of all rounds."""
    for prompt in prompts:  # the shorter one before is its beginning
        _generate(client, clock, prompt, 1)
        _slot(client, "save", len(prompt))
    runs: list[tuple[list[float], list[float]]] = [([], []) for _ in prompts]
    for _ in range(rounds):
        for prompt, (one, many) in zip(prompts, runs, strict=True):
            _slot(client, "restore", len(prompt))
            one.append(_generate(client, clock, prompt, 1))
            many.append(_generate(client, clock, prompt, 1 + TOKENS))
    return [(min(many) - min(one)) / TOKENS for one, many in runs]


def _slot(client: httpx.Client, action: str, length: int) -> None:
    client.post(
        f"/slots/0?action={action}", json={"filename": f"{length}.slot"}, headers=ALONE
    ).raise_for_status()


def _generate(client: httpx.Client, clock: int, ids: list[int], tokens: int) -> float:
    """Processor seconds of the server for a request whose prompt it has."""
    asked = {
        "prompt": ids, "n_predict": tokens, "temperature": 0, "ignore_eos": True,
        "cache_prompt": True,
    }  # fmt: skip
    before = time.clock_gettime(clock)
    response = client.post("/completion", json=asked, headers=ALONE)
    response.raise_for_status()
    time.sleep(SETTLED_S)
    seconds = time.clock_gettime(clock) - before
    if response.json()["tokens_predicted"] != tokens:
        raise AssertionError(f"{response.json()['tokens_predicted']} tokens came, not {tokens}")
    return seconds


def clock_of(pid: int) -> int:
    """Linux's clock of a process's own processor time (include/linux/posix-timers.h)."""
    return (~pid << 3) | 2
