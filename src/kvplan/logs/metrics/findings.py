"""What a scrape means: a pool that is full, requests that were taken back, hits, and what waits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from kvplan.logs.facts import Start
from kvplan.logs.findings import Finding
from kvplan.logs.infer import Inferred
from kvplan.logs.metrics.reading import EXPORTERS, share

FULL: Final = 0.9  # of the pool; beyond it a decode step may find no free block
ROOM: Final = 0.5
MARKS: Final = ("running_requests", "waiting_requests")


def is_scrape(start: Start) -> bool:
    """Whether the facts are of a running server."""
    return any(start.last(name) for name in MARKS)


@dataclass(frozen=True, slots=True)
class Hits:
    """What was found of what was looked for since the start, in tokens or in blocks."""

    found: int | float
    queried: int | float
    unit: str

    @property
    def rate(self) -> float:
        """The share that was found."""
        return share(self.found, self.queried) or 0.0


def hits_of(start: Start) -> Hits | None:
    """The counters of hits; None where the engine exports none, or nothing was looked for yet."""
    for unit in ("tokens", "blocks"):
        hits = start.number(f"prefix_hit_{unit}")
        queried = start.number(f"prefix_queried_{unit}")
        computed = start.number(f"prefix_computed_{unit}")
        if hits is not None and computed is not None:
            queried = hits + computed
        if hits is not None and queried:
            return Hits(hits, queried, unit)
    return None


def infer_scrape(start: Start) -> Iterator[Inferred]:
    """Figures that follow from the series."""
    if not is_scrape(start):
        return
    if hits := hits_of(start):
        how = f"{hits.found:,.0f} {hits.unit} found / {hits.queried:,.0f} looked for, since start"
        yield Inferred("prefix_hit_rate", round(hits.rate, 6), "", how)
    usage, tokens = start.most("kv_usage"), start.least("kv_tokens")
    if usage is not None and tokens is not None:
        used = round(float(usage.value) * int(tokens.value))
        how = f"{float(usage.value):.1%} of {int(tokens.value):,} tokens"
        yield Inferred("used_kv_tokens", used, "tokens", how)
    blocks, block = start.least("num_gpu_blocks"), start.least("block_size")
    if tokens is None and blocks is not None and block is not None:
        held = int(blocks.value) * int(block.value)
        how = (
            f"{int(blocks.value):,} blocks of {int(block.value)}: where all layers are of one "
            "kind; with windows or states the blocks are shared by the groups of layers"
        )
        yield Inferred("kv_tokens", held, "tokens", how)


def find_scrape(start: Start) -> Iterator[Finding]:
    """Findings of a running server."""
    if is_scrape(start):
        for check in CHECKS:
            yield from check(start)


def _full(start: Start) -> Iterator[Finding]:
    usage, waiting = start.number("kv_usage"), start.number("waiting_requests") or 0
    if usage is None:
        return
    numbers = {"kv_usage": usage, "waiting_requests": int(waiting)}
    if usage >= FULL and waiting:
        yield Finding(
            "pool_full",
            "warning",
            f"The pool is {usage:.0%} full and {waiting:,.0f} requests wait for it: more cache, "
            "shorter requests or fewer at once end the wait.",
            numbers,
        )
    elif usage < ROOM and waiting:
        yield Finding(
            "queue_without_need",
            "warning",
            f"{waiting:,.0f} requests wait though the pool is {usage:.0%} full: a limit of "
            "requests or of tokens a step holds them, not the cache.",
            numbers,
        )


def _preempted(start: Start) -> Iterator[Finding]:
    count, finished = start.number("preemptions"), start.number("finished_requests")
    if not count:
        return
    of = f" beside {finished:,.0f} that finished" if finished else ""
    yield Finding(
        "preempted",
        "warning",
        f"Requests were taken back {count:,.0f} times{of}: the pool was too small for those that "
        "ran, and what they had computed was computed again.",
        {"preemptions": int(count), "finished_requests": int(finished or 0)},
    )


def _hits(start: Start) -> Iterator[Finding]:
    gauge = start.last("hit_rate_gauge")
    if hits := hits_of(start):
        numbers = {"hit": hits.found, "queried": hits.queried, "hit_rate": hits.rate}
        said = (
            f"{hits.rate:.1%} of {hits.queried:,.0f} {hits.unit} of prompts were in the cache "
            "since the start."
        )
        if gauge is not None:
            said += f" The engine's own gauge ({float(gauge.value):.1%}) is of its last steps."
        yield Finding("prefix_hits", "note", said, numbers)
    elif gauge is not None:
        yield Finding(
            "hit_rate_is_a_gauge",
            "note",
            f"The hit rate {float(gauge.value):.1%} is a gauge of the last steps: no counter tells "
            "that of the whole run.",
            {"hit_rate_gauge": gauge.value},
        )


def _missing(start: Start) -> Iterator[Finding]:
    """What the engine does not export, so that nobody looks for it."""
    exporter = next((e for e in EXPORTERS if e.engine == start.engine), None)
    for name, why in exporter.missing.items() if exporter else ():
        known = hits_of(start) if name == "hit_rate" else start.last(name)
        if known is None:
            yield Finding(f"no_{name}", "note", why)


CHECKS: Final[tuple[Callable[[Start], Iterator[Finding]], ...]] = (
    _full, _preempted, _hits, _missing,
)  # fmt: skip
