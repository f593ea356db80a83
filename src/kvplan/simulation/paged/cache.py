"""The groups of a cache over one pool: the hit that all can serve, and blocks for a step.

After vLLM's v1/core/kv_cache_coordinator.py and kv_cache_manager.py (0.32.0).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kvplan.core.errors import BadValue
from kvplan.core.units import ceil_div
from kvplan.simulation.blocks import Block, BlockPool
from kvplan.simulation.paged.groups import ChunkedGroup, FullGroup, WindowGroup
from kvplan.simulation.paged.request import Keys, Request, Table
from kvplan.simulation.paged.settings import PagedSettings
from kvplan.simulation.paged.states import StateGroup

KINDS = {"full": FullGroup, "window": WindowGroup, "chunked": ChunkedGroup, "state": StateGroup}


class Hit(NamedTuple):
    """Blocks by group, the tokens that they spare, and where a shared prefix really ends.

    ``junction`` is 0 unless a group keeps more of the prefix than another.
    """

    blocks: tuple[list[Block], ...]
    num_tokens: int
    junction: int


class PagedCache:
    """Blocks of requests."""

    def __init__(self, settings: PagedSettings) -> None:
        self.settings = settings
        self.pool = BlockPool(settings.num_blocks, settings.keyless_first)
        self.groups = make_groups(settings, self.pool)
        lookups = {group.numbers: group for group in reversed(self.groups)}
        self._lookups = sorted(lookups.values(), key=lambda g: (not _is_full(g), g.number))
        self._alignment = settings.alignment if len(settings.groups) > 1 else 1
        self._nothing = Hit(tuple([] for _ in self.groups), 0, 0)

    def start_step(self) -> None:
        """Called before each step."""
        for group in self.groups:
            group.start_step()

    def lookup(self, request: Request) -> Hit:
        """What the cache has of a request; its last token is always left to compute."""
        if not self.settings.prefix_caching:
            return self._nothing
        most = request.num_tokens - 1
        if len(self.groups) == 1:
            hits, length = self.groups[0].find(request.keys, most)
            return Hit((hits[0],), length, 0)
        return self._reconciled(request.keys, most)

    def _reconciled(self, keys: Keys, most: int) -> Hit:
        """Every kind of group lowers the length until all can serve it.

        A group that serves more than the others tells where a prefix is shared that they do not
        keep yet.
        """
        found: dict[int, list[Block]] = {}
        full_length: dict[int, int] = {}
        longest, length = 0, most
        while True:
            current = length
            for group in self._lookups:
                if group.number in full_length:
                    current = min(current, full_length[group.number])
                    continue
                hits, current = group.find(keys, current)
                found.update(zip(group.numbers, hits, strict=True))
                longest = max(longest, current)
                if _is_full(group):
                    full_length[group.number] = current
            if current >= length:
                break
            length = current
            if len(self._lookups) == 2 and _is_full(self._lookups[0]):
                break
        for group in self._lookups:
            if _is_full(group):
                for number in group.numbers:
                    del found[number][ceil_div(length, group.block_size) :]
        blocks = tuple(found[number] for number in range(len(self.groups)))
        return Hit(blocks, length, longest if longest > length else 0)

    def allocate(
        self, request: Request, num_new: int, hit: Hit | None = None, *,
        whole: bool = False, watermark: int = 0,
    ) -> bool:  # fmt: skip
        """Blocks for so many new tokens after a hit; False, and nothing taken, if they do not fit.

        ``whole`` asks that all known tokens fit, though only those of the step are taken.
        """
        hit = hit or self._nothing
        if not request.tables:
            request.tables = tuple(Table() for _ in self.groups)
        limit = self.settings.max_model_len
        computed = min(request.num_computed + hit.num_tokens, limit)
        if whole:
            tokens = min(request.num_tokens, limit)
            if self._needed(request, tokens, hit, computed, cap=True) + watermark > self.num_free:
                return False
        for group, table in zip(self.groups, request.tables, strict=True):
            group.drop(table, max(0, computed - request.num_in_flight))
        tokens = min(computed + num_new, limit)
        if self._needed(request, tokens, hit, computed, cap=False) + watermark > self.num_free:
            return False
        for group, table, blocks in zip(self.groups, request.tables, hit.blocks, strict=True):
            if not table.blocks:
                group.adopt(table, blocks, computed)
        for group, table in zip(self.groups, request.tables, strict=True):
            group.grow(table, tokens)
        self.register(request, min(computed + num_new, request.num_tokens))
        return True

    def _needed(self, request: Request, tokens: int, hit: Hit, computed: int, *, cap: bool) -> int:
        end = 0 if self.settings.retention else request.prefill_end
        if self.settings.retention is None:
            end = 0
        rows = zip(self.groups, request.tables, hit.blocks, strict=True)
        return sum(
            group.needed(table, tokens, blocks, computed, cap=cap, prefill_end=end)
            for group, table, blocks in rows
        )

    def register(self, request: Request, num_tokens: int) -> None:
        """Blocks that so many tokens fill can be found from now on, also before the step has run.

        With several groups only whole units of all of them count.
        """
        if not self.settings.prefix_caching:
            return
        num_tokens -= num_tokens % self._alignment
        for group, table in zip(self.groups, request.tables, strict=True):
            group.register(table, request, num_tokens)

    def free(self, request: Request) -> None:
        """The request ends or is preempted."""
        for group, table in zip(self.groups, request.tables, strict=bool(request.tables)):
            group.free(table)
        request.tables = ()

    @property
    def num_free(self) -> int:
        """Blocks that nobody holds."""
        return self.pool.num_free

    def check_integrity(self, requests: Iterable[Request]) -> None:
        """The pool is whole, and these requests hold all that is held.

        Raises:
            AssertionError: it is broken.
        """
        self.pool.check_integrity(
            [table.blocks for request in requests for table in request.tables]
        )


def make_groups(settings: PagedSettings, pool: BlockPool) -> list[FullGroup]:
    """The groups by their kinds; a state whose block is as long as a request is one block."""
    made = []
    for number, group in enumerate(settings.groups):
        alike = tuple(at for at, other in enumerate(settings.groups) if other == group)
        made.append(KINDS[group.kind](group, number, alike, pool, settings))
    return made


def most_blocks(settings: PagedSettings, num_tokens: int) -> int:
    """Blocks that a request of so many tokens holds at its largest, alone."""
    return sum(
        min(ceil_div(num_tokens, group.block_size), group.admission_cap or num_tokens)
        for group in make_groups(settings, BlockPool(1))
    )


def check_fits(settings: PagedSettings, num_tokens: int) -> None:
    """A request of so many tokens can be served by the empty pool.

    Raises:
        BadValue: it never can.
    """
    needed, there = most_blocks(settings, num_tokens), settings.num_blocks - 1
    if needed > there:
        raise BadValue(
            f"A request of {num_tokens:,} tokens holds {needed:,} blocks; the pool has {there:,}."
        )


def _is_full(group: FullGroup) -> bool:
    return group.group.kind == "full"
