"""llama.cpp's server: slots that keep their last conversation, chosen by likeness, then by age.

    task ──► idle slot whose cache has the most of its prompt, if that is over a tenth of it
             else the idle slot that was used longest ago; else it waits

tools/server/server-context.cpp (2026): get_available_slot, update_slots, try_clear_idle_slots, and
server-task.cpp's prompt cache in host memory. A slot's cache is one prefix; what parts from the new
prompt is dropped. Read and reproduced for text; context shift is off, as it is by default.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from kvplan.core.step import Chunk
from kvplan.simulation.servers.base import Batch, Request, Segment, Server, segments

SIMILARITY: Final = 0.1  # --slot-prompt-similarity
KEEP_SHARE: Final = 0.5  # get_available_slot: a slot that would lose more is saved first
LEAST_SHARE: Final = 0.25  # server_prompt_cache::load: an entry that would lose more stays there


@dataclass(frozen=True, slots=True, kw_only=True)
class LlamaSettings:
    """``cells`` in all; ``unified`` lets slots share them, else each has its part.

    ``host_tokens`` is what ``--cache-ram`` holds, ``token_bytes`` what a token weighs on the link.
    """

    cells: int
    slots: int = 4
    unified: bool = True
    batch_tokens: int = 2048
    similarity: float = SIMILARITY
    host_tokens: int = 0
    token_bytes: int = 0
    link_bytes_per_s: float = 0.0

    @property
    def slot_cells(self) -> int:
        """The longest conversation of one slot."""
        return self.cells if self.unified else self.cells // self.slots


@dataclass(slots=True, kw_only=True, eq=False)
class Slot:
    """A place for one conversation: what its cache holds, who uses it, when it was last used."""

    number: int
    kept: list[Segment] = field(default_factory=list)
    request: Request | None = None
    used_at: int = -1

    @property
    def tokens(self) -> int:
        """Cells that it takes."""
        if self.request is not None:
            return self.request.computed
        return _tokens(self.kept)


@dataclass(slots=True, kw_only=True)
class LlamaServer(Server):
    """One llama-server."""

    settings: LlamaSettings
    slots: list[Slot] = field(default_factory=list)
    host: list[list[Segment]] = field(default_factory=list)  # the prompt cache, oldest first
    clock: int = 0
    chunks: list[tuple[Request, int]] = field(default_factory=list)
    moved_tokens: int = 0

    def __post_init__(self) -> None:
        self.slots = [Slot(number=number) for number in range(self.settings.slots)]

    @property
    def num_blocks(self) -> int:
        """Cells."""
        return self.settings.cells

    @property
    def used_blocks(self) -> int:
        """Cells of conversations that run."""
        return sum(slot.tokens for slot in self.slots if slot.request)

    def refuses(self, request: Request) -> str:
        """A prompt that a slot cannot hold (send_error: exceeds the available context size)."""
        most = self.settings.slot_cells
        return "" if request.prompt < most else f"{request.prompt:,} tokens in a slot of {most:,}"

    def cached_tokens(self, request: Request) -> int:
        """The longest prefix that an idle slot has."""
        key = segments(request, request.prompt)
        return max((_shared(s.kept, key) for s in self.slots if not s.request), default=0)

    def plan_step(self) -> Batch | None:
        """A token of every slot that generates, then prompts up to ``--batch-size``."""
        self.admitted.clear()
        while self.waiting and (slot := self.choose(self.waiting[0])) is not None:
            self._launch(slot, self.waiting.pop(0))
        batch = self._batch()
        while batch is not None and not self._fits():
            batch = self._batch() if self._clear_idle() or self._overflow() else None
        if batch is None:
            return None
        moved = self.moved_tokens * self.settings.token_bytes
        self.moved_tokens = 0
        link = self.settings.link_bytes_per_s
        moved_s = moved / link if link else 0.0
        self.counts.moved_s += moved_s
        return batch._replace(waits_s=moved_s)

    def end_step(self) -> list[Request]:
        """Tokens come out; a slot that is done keeps its cache."""
        self.advance(self.chunks)
        # process_token: without context shift a full slot ends the answer.
        full = self.settings.slot_cells - 1
        finished = [r for r in self.running if r.done or r.computed >= full]
        for request in finished:
            self._leave(request)
        return finished

    def check_integrity(self) -> None:
        """The slots' cells are no more than there are, and each that runs has one slot."""
        held = sum(slot.tokens for slot in self.slots)
        assert held <= self.settings.cells, f"{held} cells of {self.settings.cells}"
        assert all(slot.tokens <= self.settings.slot_cells for slot in self.slots), "a long slot"
        busy = {slot.request for slot in self.slots if slot.request}
        assert busy == set(self.running), "a request without its slot"
        kept = sum(map(_tokens, self.host))
        assert kept <= self.settings.host_tokens, f"{kept} tokens in host memory"

    def quiet_steps(self) -> int:
        """Until an answer is whole, a slot full, or the cells run out."""
        if self.chunks or not self.running:
            return 0
        used = sum(slot.tokens for slot in self.slots)
        most = self.settings.slot_cells
        ends = min(min(r.remaining, most - 1 - r.computed) for r in self.running)
        return max(0, min(ends, (self.settings.cells - used) // len(self.running)) - 1)

    def skip(self, steps: int) -> None:
        """Each has so many tokens more."""
        for request in self.running:
            request.computed += steps
            request.generated += steps

    # Slots

    def choose(self, request: Request) -> Slot | None:
        """The slot that a request gets now; None where none is idle."""
        idle = [slot for slot in self.slots if slot.request is None]
        key = segments(request, request.prompt)
        best, most = None, 0
        for slot in idle:
            same = _shared(slot.kept, key)
            if same > most and same / request.prompt > self.settings.similarity:
                best, most = slot, same
        if best is None and idle:
            # The comparison is <=: of several that were never used the last is taken.
            best = min(reversed(idle), key=lambda slot: slot.used_at)
        return best

    def _launch(self, slot: Slot, request: Request) -> None:
        """The slot keeps what it has in common with the prompt, but not the last token."""
        key = segments(request, request.prompt)
        self._swap(slot, key, request.prompt)
        hit = min(_shared(slot.kept, key), request.prompt - 1)
        slot.kept, slot.request = [], request
        request.computed = request.hit = hit
        self.running.append(request)
        self.admitted.append(request)
        self.counts.queried_tokens += request.prompt
        self.counts.hit_tokens += hit

    def _leave(self, request: Request) -> None:
        slot = next(slot for slot in self.slots if slot.request is request)
        self.clock += 1
        slot.request, slot.used_at = None, self.clock
        request.cuts.append(request.prompt)
        slot.kept = segments(request, request.computed)
        self.running.remove(request)

    # Room

    def _batch(self) -> Batch | None:
        """What the slots would compute now; ``chunks`` are its prompts."""
        decoding = [request for request in self.running if request.generated]
        room = self.settings.batch_tokens - len(decoding)
        self.chunks = []
        for request in self.running:
            length = 0 if request.generated else min(request.left, room)
            if length > 0:
                room -= length
                self.chunks.append((request, length))
        if not self.running:
            return None
        return Batch([r.known for r in decoding], [Chunk(r.computed, n) for r, n in self.chunks])

    def _fits(self) -> bool:
        """Whether there are cells for the batch."""
        more = sum(1 for request in self.running if request.generated)
        more += sum(length for _, length in self.chunks)
        return sum(slot.tokens for slot in self.slots) + more <= self.settings.cells

    def _clear_idle(self) -> bool:
        """Empties the first idle slot that has a cache (try_clear_idle_slots)."""
        for slot in self.slots:
            if self.settings.unified and slot.request is None and slot.kept:
                self.counts.evicted_blocks += slot.tokens
                slot.kept = []
                return True
        return False

    def _overflow(self) -> bool:
        """No cell for anyone's next token: all that run end with an error and lose their cache.

        update_slots: the batch is halved until it is one token, then 'Context size has been
        exceeded' is sent for every slot that is processing.
        """
        for slot in self.slots:
            if slot.request is not None:
                self.gave_up.append(slot.request)
                slot.request, slot.kept = None, []
        self.running.clear()
        while self.waiting and (slot_ := self.choose(self.waiting[0])) is not None:
            self._launch(slot_, self.waiting.pop(0))
        return bool(self.running)

    # Host memory

    def _swap(self, slot: Slot, key: Sequence[Segment], prompt: int) -> None:
        """Saves what the slot would lose and loads what host memory has more of.

        get_available_slot saves a slot that was chosen by age, or would keep less than half; the
        prompt cache gives an entry that shares more of the prompt than the slot does, and more of
        itself.
        """
        if not self.settings.host_tokens:
            return
        same, own = _shared(slot.kept, key), slot.tokens
        alike = same / prompt > self.settings.similarity
        if alike and same >= KEEP_SHARE * own:
            return
        if own:
            self._save(slot.kept)
        best = self._better(key, same, same / own if own else -1.0)
        if best is not None:
            self.host.remove(best)
            slot.kept = best
            self.moved_tokens += _tokens(best)
            self.counts.host_hit_tokens += _shared(best, key)

    def _better(self, key: Sequence[Segment], same: int, kept: float) -> list[Segment] | None:
        """The last entry that beats those before it, in the prompt's share and in its own."""
        best = None
        for entry in self.host:
            shared = _shared(entry, key)
            share = shared / _tokens(entry)
            if share >= LEAST_SHARE and share > kept and shared > same:
                best, same, kept = entry, shared, share
        return best

    def _save(self, kept: list[Segment]) -> None:
        """Puts a cache behind the others; one that is a part of it goes, then the oldest."""
        tokens = _tokens(kept)
        if tokens > self.settings.host_tokens or any(_covers(e, kept) for e in self.host):
            return
        self.host = [entry for entry in self.host if not _covers(kept, entry)]
        self.host.append(kept)
        self.moved_tokens += tokens
        while sum(map(_tokens, self.host)) > self.settings.host_tokens:
            self.host.pop(0)


def _shared(kept: Sequence[Segment], key: Sequence[Segment]) -> int:
    """Tokens that two sequences begin with in common."""
    found = 0
    for mine, theirs in zip(kept, key, strict=False):
        if mine.name != theirs.name:
            break
        found += min(mine.tokens, theirs.tokens)
        if mine.tokens != theirs.tokens:
            break
    return found


def _tokens(kept: Sequence[Segment]) -> int:
    return sum(segment.tokens for segment in kept)


def _covers(longer: Sequence[Segment], shorter: Sequence[Segment]) -> bool:
    return list(longer[: len(shorter)]) == list(shorter)


def reusable(cache: Sequence[int], prompt: Sequence[int], chunk: int) -> list[tuple[int, int, int]]:
    """Runs that ``--cache-reuse`` shifts into place: (place in the cache, in the prompt, length).

    update_slots: after the common prefix both sides are walked; where at least ``chunk`` tokens are
    equal they are moved and both go on behind them, else the cache's side goes one token on.
    """
    here = there = _common_tokens(cache, prompt)
    found = []
    while here < len(cache) and there < len(prompt):
        length = _common_tokens(cache[here:], prompt[there:])
        if length >= chunk:
            found.append((here, there, length))
            here, there = here + length, there + length
        else:
            here += 1
    return found


def _common_tokens(a: Sequence[int], b: Sequence[int]) -> int:
    same = 0
    while same < min(len(a), len(b)) and a[same] == b[same]:
        same += 1
    return same
