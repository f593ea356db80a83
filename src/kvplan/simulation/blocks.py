"""A pool of blocks that forget their contents only when they are needed again.

    allocate    from the head of the free queue; what the block kept is forgotten then: an eviction
    register    the block is found by a key from now on, also by others, also when it is free
    touch       a hit: one more holder; a free block leaves the queue
    free        one holder less; the last one puts it back, to the tail if it is still found by a
                key (least recently released goes first), to the head if it is not

    block 0 is the null block: it stands for contents that nobody needs, is held by any number of
    tables and is never allocated.

It follows vLLM's v1/core/block_pool.py (0.32.0). Contents belong to whoever holds the pool: block
``number`` is an index into its storage, and ``on_evict`` tells when what it kept is gone.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from kvplan.core.errors import BadValue

NULL = 0


@dataclass(slots=True, eq=False)
class Block:
    """A block, who holds it and what it is found by.

    ``key_tokens`` is how many tokens of a sequence end where the block's contents end.
    """

    number: int
    num_holders: int = 0
    key: Hashable | None = None
    key_tokens: int = 0

    @property
    def is_null(self) -> bool:
        """Whether it stands for contents that nobody needs."""
        return self.number == NULL


@dataclass(slots=True, eq=False)
class BlockPool:
    """``num_blocks`` blocks, the null block among them.

    ``keyless_first``: freed blocks without a key are allocated next (vLLM 0.25.1 and later);
    before, they waited at the tail like the others.
    """

    num_blocks: int
    keyless_first: bool = True
    on_evict: Callable[[Block], None] | None = None
    num_evicted: int = 0
    blocks: list[Block] = field(init=False)
    _free: OrderedDict[int, Block] = field(init=False)
    _found: dict[Hashable, dict[int, Block]] = field(init=False)

    def __post_init__(self) -> None:
        if self.num_blocks < 1:
            raise BadValue(f"A pool of {self.num_blocks} blocks is none.")
        self.blocks = [Block(number) for number in range(self.num_blocks)]
        self._free = OrderedDict((block.number, block) for block in self.blocks[1:])
        self._found = {}

    @property
    def null(self) -> Block:
        """The null block."""
        return self.blocks[NULL]

    @property
    def num_free(self) -> int:
        """Blocks that nobody holds, those that are found by a key among them."""
        return len(self._free)

    @property
    def num_used(self) -> int:
        """Blocks that somebody holds."""
        return self.num_blocks - 1 - len(self._free)

    def free_order(self) -> list[int]:
        """Numbers of the free blocks, the next to be allocated first."""
        return list(self._free)

    def keys(self) -> Iterator[Hashable]:
        """What can be found, the oldest key first."""
        return iter(self._found)

    def allocate(self, count: int) -> list[Block]:
        """So many blocks, empty and with one holder.

        Raises:
            BadValue: fewer are free.
        """
        if count > len(self._free):
            raise BadValue(f"{count} blocks are asked for and {len(self._free)} are free.")
        return [self._allocate() for _ in range(count)]

    def _allocate(self) -> Block:
        _, block = self._free.popitem(last=False)
        if block.key is not None:
            self.num_evicted += 1
            if self.on_evict is not None:
                self.on_evict(block)
            self.forget(block)
        block.num_holders = 1
        return block

    def touch(self, blocks: Iterable[Block]) -> None:
        """One more holder of each."""
        for block in blocks:
            if block.is_null:
                continue
            if block.num_holders == 0:
                del self._free[block.number]
            block.num_holders += 1

    def free(self, blocks: Iterable[Block]) -> None:
        """One holder less of each; give them in the order in which they shall be allocated again.

        A sequence frees its blocks from last to first, so that its end is forgotten before its
        beginning.
        """
        keyless = []
        for block in blocks:
            if block.is_null:
                continue
            block.num_holders -= 1
            if block.num_holders:
                continue
            if block.key is None and self.keyless_first:
                keyless.append(block)
            else:
                self._free[block.number] = block
        for block in reversed(keyless):
            self._free[block.number] = block
            self._free.move_to_end(block.number, last=False)

    def lookup(self, key: Hashable) -> Block | None:
        """A block with these contents, the one that has had them longest; None if there is none."""
        found = self._found.get(key)
        return next(iter(found.values())) if found else None

    def register(self, block: Block, key: Hashable, num_tokens: int = 0) -> None:
        """The block is found by this key, and by no other.

        Two blocks may have one key: contents that are computed twice are kept twice.
        """
        if block.is_null or block.key == key:
            return
        self.forget(block)
        block.key, block.key_tokens = key, num_tokens
        self._found.setdefault(key, {})[block.number] = block

    def forget(self, block: Block) -> None:
        """The block is not found any more; who holds it keeps it."""
        if block.key is None:
            return
        found = self._found[block.key]
        del found[block.number]
        if not found:
            del self._found[block.key]
        block.key, block.key_tokens = None, 0

    def check_integrity(self, tables: Iterable[Sequence[Block]] | None = None) -> None:
        """Every block is free or held, and found by its key alone.

        ``tables`` are all that is held; then the holders are counted too.

        Raises:
            AssertionError: the pool is broken.
        """
        free = set(self._free)
        assert NULL not in free, "the null block is free"
        for block in self.blocks[1:]:
            assert (block.num_holders == 0) == (block.number in free), f"{block} free or held"
        registered = {number: key for key, row in self._found.items() for number in row}
        assert all(self._found.values()), "a key without a block"
        expected = {block.number: block.key for block in self.blocks if block.key is not None}
        assert registered == expected, "keys and blocks disagree"
        if tables is None:
            return
        held = Counter(block.number for table in tables for block in table if not block.is_null)
        counted = {block.number: block.num_holders for block in self.blocks if block.num_holders}
        assert counted == dict(held), f"holders {counted} and tables {dict(held)} disagree"
