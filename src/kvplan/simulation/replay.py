"""Steps scenarios through the reference scheduler, without a clock: ``kvplan simulate --replay``.

A scenario is settings and requests; a prompt is segments ``[stream, start, length]``, and two
tokens are equal if they have the same place in the same stream. Output token j of request i is
place j of stream ``out<i>``, so that a later turn may quote it.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections import deque
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvplan.core.errors import BadFile, BadValue, SourceUnreachable
from kvplan.simulation.paged.cache import check_fits
from kvplan.simulation.paged.request import Keys, Request
from kvplan.simulation.paged.scheduler import Scheduled, Scheduler
from kvplan.simulation.paged.settings import CacheGroup, Kind, PagedSettings

MOST_STEPS = 1_000_000
MOST_BLOCKS = 1 << 24
MOST_BYTES = 1 << 28
MOST_TOKENS = 1 << 24  # of all requests of a scenario
KINDS: dict[str, Kind] = {
    "FullAttentionSpec": "full",
    "MLAAttentionSpec": "full",
    "SlidingWindowSpec": "window",
    "ChunkedLocalAttentionSpec": "chunked",
    "MambaSpec": "state",
}
# Models whose state layers are Mamba-2, whose prefill exports the state of the last boundary
# (model_executor/layers/mamba/mamba_mixer2.py, 0.29.0 and later); a group may say so itself.
EXPORTS = ("nemotron", "falcon-h1", "mamba2", "mamba-2", "codestral-mamba", "bamba", "zamba2",
           "granite-4", "granite4")  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What became of a scenario: one row a request, and (tokens, requests, free blocks) a step."""

    name: str
    results: tuple[dict[str, int | None], ...]
    steps: tuple[tuple[int, int, int], ...]

    def to_dict(self) -> dict[str, Any]:
        """The contract's row."""
        return {"id": self.name, "results": list(self.results), "total_steps": len(self.steps)}


def read_scenarios(path: Path) -> Iterator[dict[str, Any]]:
    """The scenarios of a JSONL file, one a line, gzipped or not.

    Raises:
        BadFile: a line that is no scenario, or too large.
        SourceUnreachable: no such file.
    """
    text = _text(path)
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            raise BadFile(f"Line {number} of {path} is not JSON.") from None
        if not isinstance(found, dict):
            raise BadFile(f"Line {number} of {path} is no scenario: an object is expected.")
        yield found


def _text(path: Path) -> str:
    try:
        with path.open("rb") as plain:
            is_packed = plain.read(2) == b"\x1f\x8b"
        with gzip.open(path) if is_packed else path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise SourceUnreachable(f"{path} cannot be read: {error}.") from None
    if len(data) > MOST_BYTES:
        raise BadFile(f"{path} is larger than {MOST_BYTES >> 20} MiB.")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise BadFile(f"{path} is not text.") from None


def replay(scenario: Mapping[str, Any]) -> Replayed:
    """Every decision of one scenario.

    Raises:
        BadValue: settings or requests that are none, or a request that can never fit.
    """
    name = str(scenario.get("id", ""))
    try:
        settings = settings_of(scenario["settings"])
        requests = _requests(scenario["requests"], settings)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        why = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise BadValue(f"Scenario {name[:60]!r} cannot be read: {why[:200]}.") from None
    for _, request in requests:
        check_fits(settings, request.num_prompt + request.num_output)
    return _Run(name, settings, requests).replayed()


def settings_of(row: Mapping[str, Any]) -> PagedSettings:
    """A scenario's settings; what it does not name is as in vLLM 0.32.0, one group of layers."""
    model = str(row.get("model", "")).lower()
    exports = any(word in model for word in EXPORTS)
    groups = row.get("groups") or [{"kind": "FullAttentionSpec", "block_size": row["block_size"]}]
    optional = {
        name: row[name]
        for name in ("policy", "preemption", "chunked_prefill", "long_prefill_token_threshold",
                     "watermark", "reserve_prompt", "keyless_first", "retention",
                     "async_scheduling")
        if name in row
    }  # fmt: skip
    if (num_blocks := int(row["num_blocks"])) > MOST_BLOCKS:
        raise ValueError(f"{num_blocks:,} blocks are more than {MOST_BLOCKS:,}")
    return PagedSettings(
        num_blocks=num_blocks,
        groups=tuple(_group(group, exports) for group in groups),
        max_num_seqs=int(row["max_num_seqs"]),
        max_num_batched_tokens=int(row["max_num_batched_tokens"]),
        max_model_len=int(row["max_model_len"]),
        prefix_caching=bool(row.get("enable_prefix_caching", True)),
        # The engine reserves for two batches in flight on GPUs also when a scenario settles each
        # step at once (config/vllm.py max_concurrent_batches counts the runner's, 0.32.0).
        concurrent_batches=int(row.get("concurrent_batches", 1)),
        **optional,
    )


def _group(row: Mapping[str, Any], exports: bool) -> CacheGroup:
    kind = KINDS.get(row["kind"], row["kind"])
    return CacheGroup(
        kind=kind,
        block_size=int(row["block_size"]),
        window=int(row.get("sliding_window") or row.get("attention_chunk_size") or 0),
        checkpoint=bool(row.get("checkpoint_blocks", exports)) and kind == "state",
    )


def _requests(rows: list[Mapping[str, Any]], settings: PagedSettings) -> list[tuple[int, Request]]:
    index: dict[Hashable, int] = {}
    found = []
    total = 0
    for number, row in enumerate(rows):
        segments = [(str(s), int(a), int(n)) for s, a, n in row["prompt"]]
        prompt, output = sum(n for _, _, n in segments), int(row["output_tokens"])
        total += prompt + output
        if prompt < 1 or output < 1 or total > MOST_TOKENS or any(n < 0 for _, _, n in segments):
            raise ValueError(f"request {number} asks for {prompt} and {output} tokens")
        segments.append((f"out{number}", 0, output))
        request = Request(
            number=number,
            num_prompt=prompt,
            num_output=output,
            keys=keys_of(segments, settings.hash_block, index),
            priority=int(row.get("priority", 0)),
            order=number,
        )
        found.append((int(row["arrival_step"]), request))
    return sorted(found, key=lambda one: one[0])


def keys_of(segments: list[tuple[str, int, int]], size: int, index: dict[Hashable, int]) -> Keys:
    """What each multiple of ``size`` tokens is found by: a number for it and all before it.

    ``index`` gives equal beginnings equal numbers; requests that may share have one.
    """
    chain = [0]
    block: list[tuple[str, int, int]] = []
    missing = size
    for stream, start, length in segments:
        at, left = start, length
        while left:
            taken = min(left, missing)
            _append(block, stream, at, taken)
            at, left, missing = at + taken, left - taken, missing - taken
            if not missing:
                chain.append(index.setdefault((chain[-1], tuple(block)), len(index) + 1))
                block, missing = [], size
    return lambda num_tokens: chain[num_tokens // size]


def _append(block: list[tuple[str, int, int]], stream: str, start: int, length: int) -> None:
    """Runs are joined, so that equal tokens are equal however they were cut."""
    if block and block[-1][0] == stream and sum(block[-1][1:]) == start:
        length += block[-1][2]
        start = block.pop()[1]
    block.append((stream, start, length))


class _Run:
    """One scenario on its way."""

    def __init__(
        self, name: str, settings: PagedSettings, requests: list[tuple[int, Request]]
    ) -> None:
        self.name, self.requests = name, requests
        self.scheduler = Scheduler(settings)
        self.in_flight: deque[tuple[int, Scheduled, set[Request]]] = deque()
        self.results: list[dict[str, int | None]] = [
            {"hit": None, "admitted_step": None, "first_token_step": None, "finished_step": None,
             "preemptions": 0}
            for _ in requests
        ]  # fmt: skip

    def replayed(self) -> Replayed:
        """Until everything has ended."""
        steps: list[tuple[int, int, int]] = []
        sent = 0
        while sent < len(self.requests) or not self.scheduler.is_idle:
            while sent < len(self.requests) and self.requests[sent][0] <= len(steps):
                self.scheduler.add(self.requests[sent][1])
                sent += 1
            steps.append(self._step(len(steps) + 1))
            if len(steps) > MOST_STEPS:
                raise BadValue(f"Scenario {self.name!r} does not end in {MOST_STEPS:,} steps.")
        for _, request in self.requests:
            self.results[request.number]["preemptions"] = request.num_preemptions
        return Replayed(name=self.name, results=tuple(self.results), steps=tuple(steps))

    def _step(self, step: int) -> tuple[int, int, int]:
        scheduled = self.scheduler.step()
        for request, hit in self.scheduler.hits.items():
            self.results[request.number].update(hit=hit, admitted_step=step)
        row = (sum(scheduled.values()), len(scheduled), self.scheduler.cache.num_free)
        sampled = {request for request in scheduled if not request.is_prefilling}
        self.in_flight.append((step, scheduled, sampled))
        # With async scheduling a step is decided before the outputs of the last one are there.
        if len(self.in_flight) > self.scheduler.settings.async_scheduling:
            self._settle()
        return row

    def _settle(self) -> None:
        step, scheduled, sampled = self.in_flight.popleft()
        for request in sampled:
            if request.num_generated == 0:
                self.results[request.number]["first_token_step"] = step
        for request in self.scheduler.settle(scheduled, sampled):
            self.results[request.number]["finished_step"] = step
