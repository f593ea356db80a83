"""Recorded or drawn traffic as a phase: arrivals, lengths, what follows what, and shared prefixes.

An id of a block of a prompt stands for its tokens and all before them; here it becomes words drawn
by the id, so that two prompts begin alike exactly as far as they did when they were recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TYPE_CHECKING

from kvplan.core.errors import BadQuestion
from kvplan.measuring.phases import TRACE, Phase, Planned
from kvplan.measuring.prompts import Part, Prompts

if TYPE_CHECKING:
    from kvplan.simulation.traffic import Traffic


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Traffic and how it is sent: as recorded, or at other rates or so many at once."""

    traffic: Traffic
    salt: str
    concurrency: tuple[int, ...] = ()
    rates: tuple[float, ...] = ()

    def phases(self, prompts: Prompts, longest: int | None) -> list[Phase]:
        """A phase for each way; ``longest`` leaves out requests that the server cannot hold.

        Raises:
            BadQuestion: nothing of it can be sent.
        """
        ways: list[tuple[int | None, float | None]] = [(count, None) for count in self.concurrency]
        ways += [(None, rate) for rate in self.rates]
        return [self._phase(prompts, longest, *way) for way in ways or [(None, None)]]

    def _phase(
        self, prompts: Prompts, longest: int | None, concurrency: int | None, rate: float | None
    ) -> Phase:
        traffic = self.traffic
        salt = f"{self.salt}-{concurrency}-{rate}"
        sent = list(_requests(traffic, prompts, salt, longest))
        if not sent:
            raise BadQuestion(f"No request of {traffic.source} fits the server's context.")
        at_once = concurrency or (traffic.max_in_flight if rate is None else None)
        if at_once is not None:
            return Phase(kind=TRACE, requests=tuple(sent), concurrency=at_once)
        span = max(one.arrival_s for one in sent)
        own = (len(sent) - 1) / span if span > 0 else float(len(sent))
        faster = (rate or own) / own
        return Phase(
            kind=TRACE,
            requests=tuple(replace(one, arrival_s=one.arrival_s / faster) for one in sent),
            concurrency=None,
            rate=rate or own,
        )


def _requests(
    traffic: Traffic, prompts: Prompts, salt: str, longest: int | None
) -> Iterator[Planned]:
    """Those that fit, in order; what follows one that is left out follows nothing."""
    places: dict[int, int] = {}
    seen: set[int] = set()
    for i in range(len(traffic)):
        words = max(1, int(traffic.prompt_tokens[i]) - prompts.overhead)
        tokens, output = words + prompts.overhead, max(1, int(traffic.output_tokens[i]))
        if longest is not None and tokens + output > longest:
            continue
        begin, end = int(traffic.hash_starts[i]), int(traffic.hash_starts[i + 1])
        ids = [int(one) for one in traffic.hash_ids[begin:end]]
        known = _known(ids, seen, traffic.hash_block)
        seen.update(ids)
        after = places.get(int(traffic.after[i]), -1)
        places[i] = len(places)
        yield Planned(
            parts=tuple(_parts(ids, traffic.hash_block, words, salt, i)),
            prompt_tokens=tokens,
            output_tokens=output,
            known_tokens=min(known, words),
            arrival_s=float(traffic.arrival_s[i]),
            after=after,
            think_s=float(traffic.think_s[i]) if after >= 0 else 0.0,
        )


def _known(ids: Sequence[int], seen: set[int], block: int) -> int:
    """Tokens at the beginning whose blocks were all sent before."""
    return block * sum(1 for _ in takewhile(seen.__contains__, ids))


def _parts(ids: Sequence[int], block: int, words: int, salt: str, number: int) -> Iterator[Part]:
    """A part a block, and one of the request's own."""
    left = words
    for one in ids:
        if left > 0:
            yield Part(f"{salt}-b{one}", min(block, left))
            left -= min(block, left)
    if left > 0:
        yield Part(f"{salt}-r{number}", left)
