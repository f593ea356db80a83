"""A group of recurrent states: one block at a time, kept at block boundaries ("align").

    tokens  0 ······ 544 ······ 1088 ······ 1632       block i keeps the state after (i + 1) × 544
    blocks   null      null       kept        running

Chunks of a prefill end on boundaries, so that a state is whole there; a step writes into a new
block, and the one before the last is given back. Without prefix caching the engine's block is as
long as the longest request, and each has one.

After MambaManager of vLLM's v1/core/single_type_kv_cache_manager.py and
_mamba_block_aligned_split of v1/core/sched/scheduler.py (0.32.0), hits on whole blocks only.
"""

from __future__ import annotations

from collections.abc import Sequence

from kvplan.core.units import ceil_div
from kvplan.simulation.blocks import Block, BlockPool
from kvplan.simulation.paged.groups import FullGroup, Hits, count_idle
from kvplan.simulation.paged.request import Keys, Request, Table
from kvplan.simulation.paged.settings import CacheGroup, PagedSettings


def last_boundary(num_tokens: int, block_size: int) -> int:
    """The last block boundary that leaves a token to compute."""
    return max((num_tokens - 1) // block_size * block_size, 0)


class StateGroup(FullGroup):
    """Mamba, gated delta nets and their like."""

    def __init__(
        self,
        group: CacheGroup,
        number: int,
        numbers: tuple[int, ...],
        pool: BlockPool,
        settings: PagedSettings,
    ) -> None:
        super().__init__(group, number, numbers, pool, settings)
        self.written: set[object] = set()  # keys whose state this step writes: no hit before it ran

    @property
    def admission_cap(self) -> int:
        """The running state, the one before it, and an exported one."""
        return 2 + self.group.checkpoint

    def start_step(self) -> None:
        """What the last step wrote is there."""
        self.written.clear()

    def num_skipped(self, num_tokens: int) -> int:
        """The state of the last token is all that counts."""
        return num_tokens - 1

    def find(self, keys: Keys, max_tokens: int) -> tuple[Hits, int]:
        """The last boundary whose state is kept."""
        size = self.block_size
        for index in range(max_tokens // size - 1, -1, -1):
            blocks = self.found(keys((index + 1) * size))
            if blocks is not None and (index + 1) * size % self.alignment == 0:
                nulls = [self.pool.null] * index
                return [[*nulls, block] for block in blocks], (index + 1) * size
        return [[] for _ in self.numbers], 0

    def needed(
        self, table: Table, num_tokens: int, hits: Sequence[Block], computed: int, *, cap: bool,
        prefill_end: int,
    ) -> int:  # fmt: skip
        """One a step, one more for an exported state; impossible if the hit is not written yet."""
        if hits and hits[-1].key in self.written:
            return self.pool.num_blocks + 1
        checkpoint = self._checkpoint(table, computed, num_tokens, prefill_end)
        if not cap:
            table.checkpoint = checkpoint
        new = ceil_div(num_tokens, self.block_size) - len(hits) - len(table.blocks)
        new = min(new, 1 + (checkpoint is not None))
        return new + count_idle(hits) if hits else new

    def _checkpoint(
        self, table: Table, start: int, end: int, prefill_end: int
    ) -> tuple[int, int] | None:
        """Where the last chunk of a prefill exports a state: (tokens, block)."""
        if not self.group.checkpoint:
            return None
        size, index = self.block_size, ceil_div(end, self.block_size) - 2
        position = last_boundary(end, self.alignment)
        possible = (
            position > 0
            and end >= prefill_end
            and exports_state(start, end, position, self.hash_block, size)
            and index >= 0
            and (index >= len(table.blocks) or table.blocks[index].is_null)
        )
        return (position, index) if possible else None

    def grow(self, table: Table, num_tokens: int) -> None:
        """A new block for the running state where a boundary is crossed."""
        required, before = ceil_div(num_tokens, self.block_size), len(table.blocks)
        exported = table.checkpoint is not None
        if required > before or exported:
            if before:
                table.last_state = before - 1
            nulls = required - 1 - exported - before
            if before < required - 1:
                table.blocks.extend([self.pool.null] * nulls)
            table.blocks.extend(self.pool.allocate(max(required - len(table.blocks), 0)))
        table.started = True

    def drop(self, table: Table, num_processed: int) -> None:
        """Give back the states before the last processed token's."""
        self._retire(
            table, min(self.num_skipped(num_processed) // self.block_size, len(table.blocks))
        )
        index = table.last_state
        if index is None or index >= ceil_div(num_processed, self.block_size) - 1:
            return
        if not table.blocks[index].is_null:
            self.pool.free([table.blocks[index]])
            table.blocks[index] = self.pool.null

    def _retire(self, table: Table, end: int) -> None:
        if table.num_retired >= end:
            return
        freed = []
        for index in range(end - 1, table.num_retired - 1, -1):
            if not table.blocks[index].is_null:
                freed.append(table.blocks[index])
                table.blocks[index] = self.pool.null
        self.pool.free(freed)
        table.num_retired = end

    def kept(self, start: int, end: int, request: Request) -> Sequence[bool] | None:
        """The states at segments' ends, at the prompt's end and at a junction."""
        return self._kept(start, end, self.boundaries(request))

    def _kept(self, start: int, end: int, boundaries: Sequence[int]) -> Sequence[bool] | None:
        retention = self.settings.retention
        if retention is None:
            return None
        blocks = retention // self.block_size
        if retention and blocks <= 1:
            return None
        mask = [bool(blocks) and (index + 1) % blocks == 0 for index in range(start, end)]
        for boundary in boundaries:
            index = boundary // self.alignment * self.alignment // self.block_size - 1
            if start <= index < end:
                mask[index - start] = True
        return mask

    def register(self, table: Table, request: Request, num_tokens: int) -> None:
        """Whole states can be found; none of them before this step has run."""
        before = table.num_registered
        super().register(table, request, num_tokens)
        end = self._register_end(table, request, num_tokens)
        if end is not None:
            self.written.add(end)
        for block in table.blocks[before : table.num_registered]:
            if not block.is_null and block.key is not None:
                self.written.add(block.key)

    def _register_end(self, table: Table, request: Request, num_tokens: int) -> object | None:
        """The state at the prompt's end: in a block of its own, or exported on the way."""
        if table.checkpoint is not None:
            return self._register_checkpoint(table, request)
        at = last_boundary(request.num_prompt, self.hash_block)
        if num_tokens <= 0 or num_tokens % self.hash_block or num_tokens != at:
            return None
        index = ceil_div(num_tokens, self.block_size) - 1
        if index >= len(table.blocks) or table.blocks[index].is_null:
            return None
        return self._keep(table.blocks[index], request, num_tokens)

    def _register_checkpoint(self, table: Table, request: Request) -> object | None:
        assert table.checkpoint is not None
        position, index = table.checkpoint
        block = table.blocks[index]
        at_end = position == last_boundary(request.num_prompt, self.alignment)
        number = position // self.block_size - 1
        mask = self._kept(number, number + 1, ())
        kept = position % self.block_size == 0 and (mask is None or mask[0])
        if not at_end and not kept and position != request.junction:
            self.pool.forget(block)
            return None
        if block.key_tokens == position:
            return None
        self.pool.forget(block)
        return self._keep(block, request, position)

    def _keep(self, block: Block, request: Request, num_tokens: int) -> object:
        key = (request.keys(num_tokens), self.number)
        if block.key is None or block.key_tokens < num_tokens:
            self.pool.register(block, key, num_tokens)
        return key


def exports_state(start: int, end: int, position: int, hash_block: int, size: int) -> bool:
    """Whether a chunk can write the state at a position that it passes (Mamba-2)."""
    return (
        start % hash_block == 0
        and ceil_div(end, size) - 2 > (start - 1) // size
        and start + hash_block <= position < end
    )


def aligned_chunk(request: Request, start: int, length: int, settings: PagedSettings) -> int:
    """A prefill chunk cut where a state must be kept; 0 if the budget does not reach a boundary."""
    if start >= request.prefill_end:
        return length
    size = min(group.block_size for group in settings.groups)
    checkpoint = next(group.checkpoint for group in settings.groups if group.kind == "state")
    end, last = start + length, last_boundary(request.num_tokens, size)
    position = last_boundary(request.prefill_end, settings.alignment)
    exported = (
        checkpoint
        and end >= request.prefill_end
        and exports_state(start, end, position, settings.hash_block, size)
    )
    if end < request.prefill_end:
        aligned = end // size * size
        if aligned > start or size <= _most_tokens(settings):
            end = aligned
    junction = start + (request.junction - start) // size * size
    stops = (
        (start // size + 1) * size if start % size and not exported else 0,
        0 if exported else last,
        junction if start < request.junction < end else 0,
    )
    return max(min((stop for stop in stops if start < stop < end), default=end) - start, 0)


def _most_tokens(settings: PagedSettings) -> int:
    """Of a prefill in one step."""
    limit = settings.long_prefill_token_threshold
    budget = settings.max_num_batched_tokens
    return min(budget, limit) if limit > 0 else budget
