"""What is sent: phases of requests, reuse of prefixes cold, warm and unique apart.

    unique     no two prompts begin the same
    cold       prompts that begin with a prefix which nobody has sent before: one a prefix
    warm       those prefixes again, each time with another end
    pressure   more distinct prefixes than the pool holds, cold and then again: what is lost shows

A phase is a closed loop (so many in flight) or an open one (so many a second, Poisson).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Final

from kvplan.core.errors import BadQuestion
from kvplan.measuring.prompts import Part, Prompts

COLD, WARM, UNIQUE, TRACE = "cold", "warm", "unique", "trace"
PREFIXES: Final = ("on", "off", "both")
OVERFULL: Final = 1.5  # prefixes under pressure over those that the pool holds
MOST_UNDER_PRESSURE: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A request: its prompt's parts, tokens in and out, and when it is sent.

    ``known_tokens`` are those at its beginning that were sent before; ``after`` is the request of
    the phase that it follows by ``think_s``, -1 for none.
    """

    parts: tuple[Part, ...]
    prompt_tokens: int
    output_tokens: int
    known_tokens: int = 0
    arrival_s: float = 0.0
    after: int = -1
    think_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """Requests that are measured together; ``rate`` is None in a closed loop.

    A phase of the same ``group`` is of the same conditions: repeats are summed up as one.
    """

    kind: str
    requests: tuple[Planned, ...]
    concurrency: int | None
    prompt_tokens: int | None = None
    rate: float | None = None
    reuse: bool = True
    pressure: bool = False
    num_prefixes: int = 0

    @property
    def group(self) -> tuple[object, ...]:
        """What repeats have in common."""
        return (
            self.kind, self.prompt_tokens, self.concurrency, self.rate, self.reuse, self.pressure
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What synthetic phases are made of, as asked."""

    prompt_tokens: int
    output_tokens: int
    shared_tokens: int
    concurrency: tuple[int, ...]
    rates: tuple[float, ...]
    requests: int | None
    prefix: str
    repeat: int
    pressure: bool
    seed: int

    def num_requests(self, concurrency: int) -> int:
        """Of one phase: as asked, else enough for a median."""
        return self.requests or max(8, 2 * concurrency)


def synthetic(
    shape: Shape, prompts: Prompts, *, salt: str, holds: int | None, can_switch: bool
) -> Iterator[Phase]:
    """The phases of a shape; ``holds`` are the prompts that the server's pool keeps at once.

    Raises:
        BadQuestion: pressure on a pool that is not known or too large for it.
    """
    making = _Making(shape, prompts, f"{salt}-{shape.prompt_tokens}", holds)
    for turn in range(shape.repeat):
        for concurrency in shape.concurrency:
            yield from making.phases(f"{turn}-{concurrency}", concurrency, None, can_switch)
        for rate in shape.rates:
            yield from making.phases(f"{turn}-r{rate:g}", None, rate, can_switch)
    if shape.pressure:
        yield from making.under_pressure()


class _Making:
    def __init__(self, shape: Shape, prompts: Prompts, salt: str, holds: int | None) -> None:
        self.shape, self.prompts, self.salt, self.holds = shape, prompts, salt, holds

    def phases(
        self, name: str, concurrency: int | None, rate: float | None, can_switch: bool
    ) -> Iterator[Phase]:
        """Of one concurrency or rate."""
        shape, count = self.shape, self.shape.num_requests(concurrency or 16)
        if shape.prefix in ("off", "both"):
            sent = [self._request(f"{name}-u{i}") for i in range(count)]
            yield self._phase(UNIQUE, sent, concurrency, rate)
        if shape.prefix in ("on", "both"):
            num = min(max(concurrency or 4, 1), self.holds or 1 << 20, count)
            cold = [self._request(f"{name}-c{i}", f"{name}-p{i}") for i in range(num)]
            yield self._phase(COLD, cold, concurrency, rate, num_prefixes=num)
            warm = self._again(name, "w", num, count)
            yield self._phase(WARM, warm, concurrency, rate, num_prefixes=num)
            if shape.prefix == "both" and can_switch:
                off = self._again(name, "o", num, count)
                yield self._phase(WARM, off, concurrency, rate, num_prefixes=num, reuse=False)

    def under_pressure(self) -> Iterator[Phase]:
        """Prefixes that do not fit together: sent once, then again in the same order."""
        if self.holds is None:
            raise BadQuestion(
                "--pressure needs to know what the server's cache holds, and it does not say.",
                "Pass --pool-tokens N.",
            )
        num = max(2, ceil(self.holds * OVERFULL))
        if num > MOST_UNDER_PRESSURE:
            need = num * self.shape.prompt_tokens
            raise BadQuestion(
                f"--pressure would send {num:,} prompts, {need:,} tokens, to fill this cache.",
                f"At most {MOST_UNDER_PRESSURE} are sent: give a longer --prompt.",
            )
        concurrency = max(self.shape.concurrency or (1,))
        cold = [self._request(f"x-c{i}", f"x-p{i}") for i in range(num)]
        yield self._phase(COLD, cold, concurrency, None, num_prefixes=num, pressure=True)
        warm = self._again("x", "w", num, num)
        yield self._phase(WARM, warm, concurrency, None, num_prefixes=num, pressure=True)

    def _again(self, name: str, mark: str, num: int, count: int) -> list[Planned]:
        """``count`` requests that begin with the ``num`` prefixes in turn."""
        return [
            self._request(f"{name}-{mark}{i}", f"{name}-p{i % num}", known=True)
            for i in range(count)
        ]

    def _request(self, unique: str, shared: str = "", *, known: bool = False) -> Planned:
        shape = self.shape
        parts = self.prompts.parts(
            shape.prompt_tokens,
            unique=f"{self.salt}-{unique}",
            shared=f"{self.salt}-{shared}",
            prefix=shape.shared_tokens if shared else 0,
        )
        return Planned(
            parts=parts,
            prompt_tokens=shape.prompt_tokens,
            output_tokens=shape.output_tokens,
            known_tokens=shape.shared_tokens if known else 0,
        )

    def _phase(
        self,
        kind: str,
        requests: Sequence[Planned],
        concurrency: int | None,
        rate: float | None,
        *,
        num_prefixes: int = 0,
        reuse: bool = True,
        pressure: bool = False,
    ) -> Phase:
        sent = requests if rate is None else poisson(requests, rate, self.shape.seed)
        return Phase(
            kind=kind,
            requests=tuple(sent),
            concurrency=concurrency,
            prompt_tokens=self.shape.prompt_tokens,
            rate=rate,
            reuse=reuse,
            pressure=pressure,
            num_prefixes=num_prefixes,
        )


def poisson(requests: Sequence[Planned], rate: float, seed: int) -> list[Planned]:
    """The requests with gaps of an exponential distribution, the first at once."""
    draws, at, found = random.Random(seed), 0.0, []
    for request in requests:
        found.append(replace(request, arrival_s=at))
        at += draws.expovariate(rate)
    return found
