"""The block pool: order of reuse, what is found, who holds what."""

from __future__ import annotations

import random

import pytest

from kvplan.core.errors import BadValue
from kvplan.simulation.blocks import Block, BlockPool


def numbers(blocks: list[Block]) -> list[int]:
    return [block.number for block in blocks]


def test_blocks_are_allocated_in_order_and_the_null_block_never() -> None:
    """Block 0 stands for nothing."""
    pool = BlockPool(5)

    assert [1, 2, 3, 4] == numbers(pool.allocate(4))
    assert 0 == pool.num_free


def test_too_many_blocks_are_refused() -> None:
    """Nothing is taken by a request that cannot be served."""
    pool = BlockPool(5)
    with pytest.raises(BadValue, match="5 blocks are asked for and 4 are free"):
        pool.allocate(5)

    assert 4 == pool.num_free


@pytest.mark.parametrize(
    ("keyless_first", "expected"), [(True, [4, 3, 5, 2, 1]), (False, [5, 4, 3, 2, 1])]
)
def test_a_freed_sequence_is_reused_from_its_end(keyless_first: bool, expected: list[int]) -> None:
    """Blocks without a key first since vLLM 0.25.1, in one row with the others before."""
    pool = BlockPool(6, keyless_first=keyless_first)
    held = pool.allocate(4)
    pool.register(held[0], "a")
    pool.register(held[1], "ab")
    pool.free(reversed(held))

    assert expected == pool.free_order()
    pool.check_integrity([])


def test_a_hit_on_a_free_block_keeps_it_from_eviction() -> None:
    """It leaves the queue, and its next holder frees it to the tail."""
    pool = BlockPool(4)
    first, second, _ = held = pool.allocate(3)
    pool.register(first, "a")
    pool.register(second, "b")
    pool.free(held)
    found = pool.lookup("a")
    assert found is first
    pool.touch([found])

    assert [3, 2] == pool.free_order()
    pool.check_integrity([[found]])
    pool.free([found])
    assert [3, 2, 1] == pool.free_order()


def test_allocation_forgets_what_the_block_kept() -> None:
    """An eviction is told before the key is gone, and the key's other holder is found then."""
    told: list[tuple[int, object]] = []
    pool = BlockPool(3, on_evict=lambda block: told.append((block.number, block.key)))
    first, second = held = pool.allocate(2)
    pool.register(first, "same")
    pool.register(second, "same")
    assert pool.lookup("same") is first
    pool.free(held)
    pool.allocate(1)

    assert [(1, "same")] == told
    assert pool.lookup("same") is second
    assert 1 == pool.num_evicted


def test_a_pool_stays_whole_under_random_use() -> None:
    """Holders, queue and keys agree after every operation."""
    rng = random.Random(5)
    pool = BlockPool(24)
    tables: list[list[Block]] = []
    for _ in range(3000):
        if tables and rng.random() < 0.45:
            pool.free(reversed(tables.pop(rng.randrange(len(tables)))))
        else:
            key = rng.randrange(12)
            hit = pool.lookup(key)
            table = [hit] if hit is not None else []
            pool.touch(table)
            table += pool.allocate(min(pool.num_free, rng.randrange(4)))
            for block in table[1:]:
                if block.key is None and rng.random() < 0.6:
                    pool.register(block, rng.randrange(12), 16)
            tables.append(table)
        pool.check_integrity(tables)

    assert pool.num_evicted > 100
