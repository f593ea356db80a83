"""A phase, and its repeats, as one row: what its clients saw and what its server counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from kvplan.measuring.phases import Phase
from kvplan.measuring.sending import Record
from kvplan.measuring.spread import spread
from kvplan.measuring.watching import Watched

MOST_COPIES = 64  # of one gap: a chunk of more tokens counts as so many


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A phase that was sent: its records, what the server said meanwhile, and its span of time."""

    phase: Phase
    records: tuple[Record, ...]
    watched: Watched
    started_s: float
    ended_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One row: times over requests that finished, tokens over all; ``prompt`` is None of a trace.

    ``ttft_s`` is from sending to the first token, ``itl_s`` between later tokens (a chunk of k
    tokens counts k times a kth of its gap), ``tpot_s`` a request's mean of those. ``known_tokens``
    of the prompts were sent before; ``cached_tokens`` were reused as the replies' usage says, else
    as the server's counter ``cached_by`` tells; ``lost_tokens`` are those known and not reused.
    """

    prompt: int | None
    concurrency: int | None
    rate: float | None
    prefix: str
    reuse: bool
    pressure: bool
    distinct_prefixes: int
    requests: int
    failed: int
    failures: Mapping[str, int]
    resent: int
    ttft_s: Mapping[str, float | None]
    itl_s: Mapping[str, float | None]
    tpot_s: Mapping[str, float | None]
    e2e_s: Mapping[str, float | None]
    late_s: Mapping[str, float | None]
    duration_s: float
    requests_per_s: float
    output_tokens_per_s: float
    prompt_tokens: int
    asked_prompt_tokens: int
    output_tokens: int
    tokens_per_chunk: float | None
    known_tokens: int
    cached_tokens: int | None
    cached_by: str | None
    server_cached_tokens: int | None
    lost_tokens: int | None
    missed_requests: int | None
    preemptions: int | None
    evictions: int | None
    kv_usage_peak: float | None
    running_peak: float | None
    waiting_peak: float | None
    peak_memory_bytes: int | None
    mean_context_tokens: float

    def to_dict(self) -> dict[str, Any]:
        """The contract's row of ``runs``."""
        return asdict(self)


def summarise(measured: Iterable[Measured]) -> list[Run]:
    """A row for each kind of phase, repeats together, in the order of their first."""
    groups: dict[tuple[object, ...], list[Measured]] = {}
    for one in measured:
        groups.setdefault(one.phase.group, []).append(one)
    return [run_of(several) for several in groups.values()]


def run_of(several: Sequence[Measured]) -> Run:
    """The row of phases of the same conditions."""
    phase = several[0].phase
    records = [record for one in several for record in one.records]
    good = [record for record in records if record.reply.failure is None]
    seconds = sum(one.ended_s - one.started_s for one in several)
    tokens = sum(record.reply.tokens for record in records)
    chunks = sum(len(record.reply.arrived) for record in records)
    cached = _cached(several, good)
    known = sum(record.planned.known_tokens for record in good)
    lost = _lost(good)
    return Run(
        prompt=phase.prompt_tokens,
        concurrency=phase.concurrency,
        rate=phase.rate,
        prefix=phase.kind,
        reuse=phase.reuse,
        pressure=phase.pressure,
        distinct_prefixes=sum(one.phase.num_prefixes for one in several),
        requests=len(records),
        failed=len(records) - len(good),
        failures=dict(Counter(r.reply.failure for r in records if r.reply.failure is not None)),
        resent=sum(record.reply.is_resent for record in records),
        ttft_s=spread(ttft(r) for r in good),
        itl_s=spread(gap for r in good for gap in gaps(r)),
        tpot_s=spread(time for r in good if (time := tpot(r)) is not None),
        e2e_s=spread(r.reply.ended_s - r.reply.sent_s for r in good),
        late_s=spread(r.reply.sent_s - r.due_s for r in records),
        duration_s=seconds,
        requests_per_s=len(good) / seconds if seconds else 0.0,
        output_tokens_per_s=tokens / seconds if seconds else 0.0,
        prompt_tokens=sum(r.reply.prompt_tokens or r.planned.prompt_tokens for r in good),
        asked_prompt_tokens=sum(r.planned.prompt_tokens for r in good),
        output_tokens=tokens,
        tokens_per_chunk=tokens / chunks if chunks else None,
        known_tokens=known,
        cached_tokens=cached[0],
        cached_by=cached[1],
        server_cached_tokens=_grown(several, "prefix_hit_tokens"),
        lost_tokens=lost[0],
        missed_requests=lost[1],
        preemptions=_grown(several, "preemptions"),
        evictions=_grown(several, "evicted_tokens"),
        kv_usage_peak=_peak(several, "kv_usage"),
        running_peak=_peak(several, "running_requests"),
        waiting_peak=_peak(several, "waiting_requests"),
        peak_memory_bytes=max(
            (m for one in several if (m := one.watched.peak_memory_bytes) is not None), default=None
        ),
        mean_context_tokens=_context(good),
    )


def ttft(record: Record) -> float:
    """Seconds from sending to the first token."""
    reply = record.reply
    return reply.arrived[0].at_s - reply.sent_s


def gaps(record: Record) -> Iterator[float]:
    """Seconds between later tokens, one a token; those of one chunk share its gap."""
    for before, chunk in pairwise(record.reply.timed()):
        gap = (chunk.at_s - before.at_s) / chunk.tokens
        yield from (gap for _ in range(min(chunk.tokens, MOST_COPIES)))


def tpot(record: Record) -> float | None:
    """A request's mean time of a token after its first chunk; None where there is none."""
    timed = record.reply.timed()
    later = sum(chunk.tokens for chunk in timed[1:])
    return (timed[-1].at_s - timed[0].at_s) / later if later else None


def _cached(several: Sequence[Measured], good: Sequence[Record]) -> tuple[int | None, str | None]:
    """Reused tokens by the replies, else by the server's counter."""
    said = [r.reply.cached_tokens for r in good if r.reply.cached_tokens is not None]
    if said and len(said) == len(good):
        return sum(said), "usage"
    counted = _grown(several, "prefix_hit_tokens")
    return (counted, "counter") if counted is not None else (None, None)


def _lost(good: Sequence[Record]) -> tuple[int | None, int | None]:
    """Tokens that were sent before and not reused, and the requests that missed most of theirs."""
    known = [r for r in good if r.planned.known_tokens]
    if not known or any(r.reply.cached_tokens is None for r in known):
        return None, None
    lost = [max(0, r.planned.known_tokens - (r.reply.cached_tokens or 0)) for r in known]
    missed = sum(
        2 * lacking > r.planned.known_tokens for lacking, r in zip(lost, known, strict=True)
    )
    return sum(lost), missed


def _context(good: Sequence[Record]) -> float:
    """Tokens that a decoding sequence sees on average: its prompt and half of its output."""
    if not good:
        return 0.0
    total = sum(
        (r.reply.prompt_tokens or r.planned.prompt_tokens) + r.reply.tokens / 2 for r in good
    )
    return total / len(good)


def _grown(several: Sequence[Measured], name: str) -> int | None:
    values = [one.watched.grown(name) for one in several]
    return (
        None if any(value is None for value in values) else sum(v for v in values if v is not None)
    )


def _peak(several: Sequence[Measured], name: str) -> float | None:
    return max((p for one in several if (p := one.watched.peak(name)) is not None), default=None)
