"""The block pool, compiled: ``simulation/blocks.py`` over arrays.

Free blocks are a ring through block 0, its ``next`` the first to be allocated. Blocks under one key
are a chain from the oldest to the newest. An index row that is emptied is closed up, so that a
search ends at the first empty row.
"""

from __future__ import annotations

import numpy as np

from kvplan.simulation.fast.compiled import compiled
from kvplan.simulation.fast.layout import NONE, Pool, Words

MIX = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: neighbours are spread
HALF, EIGHT, SEVEN = np.uint64(32), np.uint64(3), np.uint64(7)


@compiled
def home(key: int, shift: int, mask: int) -> np.int64:
    """Where a key's search begins: eight blocks that follow each other are neighbours."""
    place = np.uint64(key) >> np.uint64(shift)
    mixed = (place >> EIGHT) * MIX
    spread = ((mixed ^ (mixed >> HALF)) << EIGHT) | (place & SEVEN)
    return np.int64(spread & np.uint64(mask))


@compiled
def seek(pool: Pool, key: int) -> int:
    """The row of a key, or the empty row where it would be."""
    index = pool.index
    mask = len(index) - 1
    at = home(key, pool.state[0].shift, mask)
    while index[at].key != key and index[at].key != NONE:
        at = (at + 1) & mask
    return at


@compiled
def find_block(pool: Pool, key: int) -> int:
    """The oldest block with a key; 0 if there is none."""
    row = pool.index[seek(pool, key)]
    return int(row.oldest) if row.key == key else 0


@compiled
def close_up(pool: Pool, hole: int) -> None:
    """Moves rows behind an emptied one, so that each is reached from its home."""
    index, shift = pool.index, pool.state[0].shift
    mask = len(index) - 1
    at = hole
    while True:
        at = (at + 1) & mask
        if index[at].key == NONE:
            break
        if ((at - home(index[at].key, shift, mask)) & mask) >= ((at - hole) & mask):
            index[hole] = index[at]
            hole = at
    index[hole].key = NONE


@compiled
def register(pool: Pool, number: int, key: int, tokens: int) -> None:
    """A block that has no key is found by this one, after those that are."""
    row_at = seek(pool, key)
    row = pool.index[row_at]
    block = pool.blocks[number]
    if row.key == NONE:
        row.key, row.oldest, row.written = key, number, -1
        block.older = 0
    else:
        block.older = row.newest
        pool.blocks[row.newest].newer = number
    row.newest = number
    block.key, block.tokens, block.newer = key, tokens, 0
    if key >= 0:
        pool.state[0].shared += 1


@compiled
def forget(pool: Pool, number: int) -> None:
    """A block is not found any more."""
    blocks = pool.blocks
    block = blocks[number]
    older, newer = block.older, block.newer
    if older != 0 and newer != 0:
        blocks[older].newer = newer
        blocks[newer].older = older
    else:
        row_at = seek(pool, block.key)
        if older == 0 and newer == 0:
            close_up(pool, row_at)
        elif older == 0:
            pool.index[row_at].oldest = newer
            blocks[newer].older = 0
        else:
            pool.index[row_at].newest = older
            blocks[older].newer = 0
    block.key, block.tokens = NONE, 0


@compiled
def take(pool: Pool) -> int:
    """The next free block, empty and held once."""
    blocks = pool.blocks
    number = int(blocks[0].next)
    following = blocks[number].next
    blocks[0].next = following
    blocks[following].previous = 0
    if blocks[number].key != NONE:
        pool.state[0].evicted += 1
        forget(pool, number)
    blocks[number].holders = 1
    pool.state[0].free -= 1
    return number


@compiled
def touch(pool: Pool, number: int) -> None:
    """One more holder."""
    if number == 0:
        return
    block = pool.blocks[number]
    if block.holders == 0:
        pool.blocks[block.previous].next = block.next
        pool.blocks[block.next].previous = block.previous
        pool.state[0].free -= 1
    block.holders += 1


@compiled
def insert(pool: Pool, number: int, before: int) -> None:
    """A free block in front of another of the ring."""
    blocks = pool.blocks
    previous = blocks[before].previous
    blocks[number].previous, blocks[number].next = previous, before
    blocks[previous].next = number
    blocks[before].previous = number


@compiled
def release(pool: Pool, numbers: Words, count: int, keyless_first: int) -> None:
    """One holder less of each, in the order in which they shall be allocated again."""
    head = int(pool.blocks[0].next)
    for at in range(count):
        number = int(numbers[at])
        if number == 0:
            continue
        block = pool.blocks[number]
        block.holders -= 1
        if block.holders:
            continue
        insert(pool, number, head if keyless_first and block.key == NONE else 0)
        if head == 0 and not (keyless_first and block.key == NONE):
            head = number
        pool.state[0].free += 1
        pool.state[0].freed += 1
