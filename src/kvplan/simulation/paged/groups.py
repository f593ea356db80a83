"""What each kind of group looks up, takes, keeps and drops: attention of all kinds.

    full      every block until the request ends; a hit is a run from the start
    window    blocks before the window are dropped; a hit needs the window before its end
    chunked   blocks before the current chunk are dropped and count as hit

After vLLM's v1/core/single_type_kv_cache_manager.py (0.32.0), without speculative decoding and
context parallelism.
"""

from __future__ import annotations

from collections.abc import Sequence

from kvplan.core.units import ceil_div
from kvplan.simulation.blocks import Block, BlockPool
from kvplan.simulation.paged.request import Keys, Request, Table
from kvplan.simulation.paged.settings import CacheGroup, PagedSettings

Hits = list[list[Block]]  # by group of those that are looked up together


class FullGroup:
    """Full attention, and what the other kinds share.

    ``numbers`` are the groups with the same layout: a block is a hit if all of them have it.
    """

    def __init__(
        self,
        group: CacheGroup,
        number: int,
        numbers: tuple[int, ...],
        pool: BlockPool,
        settings: PagedSettings,
    ) -> None:
        self.group, self.number, self.numbers = group, number, numbers
        self.pool, self.settings = pool, settings
        self.block_size = group.block_size
        self.alignment, self.hash_block = settings.alignment, settings.hash_block

    @property
    def admission_cap(self) -> int | None:
        """The most blocks that a request holds at once, where it is fewer than its length."""
        return None

    def num_skipped(self, num_tokens: int) -> int:
        """Tokens at the start that the next token does not look at."""
        return 0

    def kept(self, start: int, end: int, request: Request) -> Sequence[bool] | None:
        """Which blocks of a range can serve a hit; None is all of them."""
        return None

    def found(self, key: object) -> list[Block] | None:
        """The blocks under a key, one a group; None unless every group has one."""
        blocks = []
        for number in self.numbers:
            block = self.pool.lookup((key, number))
            if block is None:
                return None
            blocks.append(block)
        return blocks

    def find(self, keys: Keys, max_tokens: int) -> tuple[Hits, int]:
        """The longest hit of at most so many tokens, and its length."""
        hits: Hits = [[] for _ in self.numbers]
        for index in range(max_tokens // self.block_size):
            blocks = self.found(keys((index + 1) * self.block_size))
            if blocks is None:
                break
            for hit, block in zip(hits, blocks, strict=True):
                hit.append(block)
        length = len(hits[0]) * self.block_size
        length -= length % self.alignment
        for hit in hits:
            del hit[ceil_div(length, self.block_size) :]
        return hits, length

    def needed(
        self, table: Table, num_tokens: int, hits: Sequence[Block], computed: int, *, cap: bool,
        prefill_end: int,
    ) -> int:  # fmt: skip
        """Free blocks that the request takes to have so many tokens, idle hits among them."""
        required = ceil_div(num_tokens, self.block_size)
        if cap and self.admission_cap is not None:
            required = min(required, self.admission_cap)
        skipped = self.num_skipped(computed) // self.block_size
        held = len(table.blocks)
        new = max(required - max(skipped, len(hits) + held), 0)
        return new + count_idle(hits[max(0, skipped - held) :]) if hits else new

    def adopt(self, table: Table, hits: Sequence[Block], num_tokens: int) -> None:
        """A request that holds nothing yet takes its hits, those that it will look at."""
        skipped = max(0, self.num_skipped(num_tokens) // self.block_size)
        hits = hits[skipped:]
        self.pool.touch(hits)
        table.blocks = [self.pool.null] * skipped + list(hits)
        table.num_registered = len(table.blocks)

    def grow(self, table: Table, num_tokens: int) -> None:
        """Blocks for so many tokens in all."""
        new = ceil_div(num_tokens, self.block_size) - len(table.blocks)
        if new > 0:
            table.blocks.extend(self.pool.allocate(new))

    def drop(self, table: Table, num_processed: int) -> None:
        """Give back what the next token does not look at; the latest blocks are freed first."""
        skipped = self.num_skipped(num_processed) // self.block_size
        if skipped <= 0 or (skipped <= len(table.blocks) and table.blocks[skipped - 1].is_null):
            return
        freed = []
        for index in range(min(skipped, len(table.blocks)) - 1, -1, -1):
            if table.blocks[index].is_null:
                break
            freed.append(table.blocks[index])
            table.blocks[index] = self.pool.null
        self.pool.free(freed)

    def register(self, table: Table, request: Request, num_tokens: int) -> None:
        """Full blocks of so many tokens can be found from now on."""
        start, end = table.num_registered, num_tokens // self.block_size
        if start >= end:
            return
        kept = self.kept(start, end, request)
        for index in range(start, end):
            if kept is None or kept[index - start]:
                tokens = (index + 1) * self.block_size
                key = (request.keys(tokens), self.number)
                self.pool.register(table.blocks[index], key, tokens)
        table.num_registered = end

    def free(self, table: Table) -> None:
        """The request ends or is preempted."""
        self.pool.free(reversed(table.blocks))

    def boundaries(self, request: Request) -> list[int]:
        """Where a later request can resume: the prompt's last token is always computed anew."""
        junction = [request.junction] if request.junction else []
        return [request.num_prompt - 1, *junction]

    def start_step(self) -> None:
        """Called before each step."""


class WindowGroup(FullGroup):
    """Sliding-window attention."""

    @property
    def admission_cap(self) -> int:
        """The window and what is in flight; one more, as a window may start inside a block."""
        tokens = self.group.window - 1 + self.settings.in_flight_tokens
        return ceil_div(min(tokens, self.settings.max_model_len), self.block_size) + 1

    @property
    def tail(self) -> int:
        """Blocks before a hit's end that must be there: those that its next token looks at."""
        return ceil_div(self.group.window - 1, self.block_size)

    def num_skipped(self, num_tokens: int) -> int:
        """A window of 4 after 7 tokens looks at tokens 4 to 7: 0 to 3 are skipped."""
        return max(0, num_tokens - self.group.window + 1)

    def find(self, keys: Keys, max_tokens: int) -> tuple[Hits, int]:
        """The last run of ``tail`` blocks; a shorter one only from the start."""
        size = self.block_size
        hits: Hits = [[self.pool.null] * (max_tokens // size) for _ in self.numbers]
        run = 0
        for index in range(max_tokens // size - 1, -1, -1):
            blocks = self.found(keys((index + 1) * size))
            if blocks is None:
                run = 0
                continue
            if run == 0 and (index + 1) * size % self.alignment:
                continue
            for hit, block in zip(hits, blocks, strict=True):
                hit[index] = block
            run += 1
            if run >= self.tail:
                return self._ending(hits, index + run)
        while run * size % self.alignment:
            run -= 1
        return self._ending(hits, run)

    def _ending(self, hits: Hits, length: int) -> tuple[Hits, int]:
        for hit in hits:
            del hit[length:]
        return hits, length * self.block_size

    def kept(self, start: int, end: int, request: Request) -> Sequence[bool] | None:
        """The tails of segments, of the prompt's end and of a junction."""
        retention = self.settings.retention
        segment = self.alignment if retention is None else retention
        mask = [False] * (end - start)
        if segment:
            blocks = segment // self.block_size
            if self.tail >= blocks:
                return None
            mask = [index % blocks >= blocks - self.tail for index in range(start, end)]
        if retention is not None:
            for boundary in self.boundaries(request):
                last = boundary // self.alignment * self.alignment // self.block_size
                for index in range(max(start, last - self.tail), min(end, last)):
                    mask[index - start] = True
        return mask


class ChunkedGroup(FullGroup):
    """Attention inside chunks of fixed length."""

    @property
    def admission_cap(self) -> int:
        """A chunk and what is in flight."""
        tokens = self.group.window + self.settings.in_flight_tokens
        return ceil_div(min(tokens, self.settings.max_model_len), self.block_size)

    def num_skipped(self, num_tokens: int) -> int:
        """A chunk of 8 after 13 tokens looks at 8 to 13; after 8 tokens at none of them."""
        return num_tokens // self.group.window * self.group.window

    def find(self, keys: Keys, max_tokens: int) -> tuple[Hits, int]:
        """Everything before the chunk, and a run of blocks inside it."""
        size = self.block_size
        start = self.num_skipped(max_tokens) // size
        hits: Hits = [[self.pool.null] * start for _ in self.numbers]
        for index in range(start, max_tokens // size):
            blocks = self.found(keys((index + 1) * size))
            if blocks is None:
                break
            for hit, block in zip(hits, blocks, strict=True):
                hit.append(block)
        return hits, len(hits[0]) * size


def count_idle(blocks: Sequence[Block]) -> int:
    """Hits that nobody holds: to hold them takes them from the free blocks."""
    return sum(not block.num_holders and not block.is_null for block in blocks)
