"""vLLM's own pool under requests that come one after the other, block for block.

What the least recently used order leaves out: a block that is not full takes a place and is used
again first, a last block that is computed again is kept twice, and a request that is longer than
the pool is refused. Answers are taken for one token, which takes no block.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kvplan.core.units import ceil_div
from kvplan.simulation.blocks import Block, BlockPool
from kvplan.simulation.prefix.pools import Rows


def vllm_hits(
    rows: Rows, lengths: Sequence[int], block_size: int, num_blocks: int
) -> Iterator[int]:
    """Blocks that each request hits; ``num_blocks`` as vLLM counts them.

    v1/core/kv_cache_manager.py get_computed_blocks, allocate_slots and free (0.32.0).
    """
    # No request takes more than it has: of a larger pool the rest is never touched.
    most = 1 + sum(ceil_div(tokens, block_size) for tokens in lengths)
    pool = BlockPool(min(num_blocks, most))
    for index, tokens in enumerate(lengths):
        if ceil_div(tokens, block_size) > num_blocks - 1:
            yield 0
            continue
        row = rows[index]
        hits = _run(pool, row[: (tokens - 1) // block_size])
        yield len(hits)
        pool.touch(hits)
        table = [*hits, *pool.allocate(ceil_div(tokens, block_size) - len(hits))]
        for block, name in zip(table, row, strict=False):
            pool.register(block, name)
        pool.free(reversed(table))


def _run(pool: BlockPool, row: Sequence[int]) -> list[Block]:
    """The blocks of an unbroken beginning."""
    found = []
    for name in row:
        block = pool.lookup(name)
        if block is None:
            break
        found.append(block)
    return found
