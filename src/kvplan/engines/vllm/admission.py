"""Whether vLLM starts: one request of the longest length has to fit in the pool.

v1/core/kv_cache_utils.py, _check_enough_kv_cache_memory and what calls it, by version.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kvplan.engines.vllm.groups import CacheGroup, Counted
from kvplan.engines.vllm.pool import request_blocks
from kvplan.engines.vllm.rules import Rules
from kvplan.engines.vllm.specs import Request


def needed_bytes(
    groups: Sequence[CacheGroup], layers: Counted, block: int, request: Request, rules: Rules
) -> int:
    """What one request of the longest length needs, as the version counts it.

    Up to 0.13 each layer by itself, without the groups' padding; from 0.14 to 0.18 of several
    groups only the first; since then all.

    Args:
        groups: the groups.
        layers: the specs before their pages were made equal.
        block: bytes of one block.
        request: at its longest.
        rules: the version's.
    """
    if rules.check == "layers":
        return sum(spec.blocks(request) * spec.page_bytes * len(at) for spec, at in layers)
    counted = groups[:1] if rules.check == "first_group" else groups
    return block * request_blocks(counted, request)


def longest_that_fits(needed: Callable[[int], int], available: int, most: int) -> int:
    """The largest length up to ``most`` whose need fits; 0 where not even one token does."""
    if needed(1) > available:
        return 0
    low, high = 1, most
    while low < high:
        middle = (low + high + 1) // 2
        if needed(middle) <= available:
            low = middle
        else:
            high = middle - 1
    return low
