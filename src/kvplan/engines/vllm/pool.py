"""The pool of one rank: bytes of a block, blocks, and the figures that a version prints of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kvplan.core.units import ceil_div
from kvplan.engines.vllm.groups import CacheGroup
from kvplan.engines.vllm.packing import packed_block_bytes
from kvplan.engines.vllm.rules import Rules
from kvplan.engines.vllm.specs import Request


class Printed(NamedTuple):
    """What the log says: tokens, and requests of the longest length at once."""

    tokens: int
    concurrency: float


def block_bytes(groups: Sequence[CacheGroup], rules: Rules, stages: int = 1) -> int:
    """Bytes that a block takes out of the pool of the fullest stage, whichever group it goes to."""
    pages = {spec.page_bytes for group in groups for spec, _ in group.members}
    if len(groups) == 1 or len(pages) == 1 or rules.packing == "widest":
        return max(group.block_bytes(stage) for group in groups for stage in range(stages))
    return packed_block_bytes(groups, rules.packing)


def request_blocks(groups: Sequence[CacheGroup], request: Request) -> int:
    """Blocks of one request of the longest length, over all groups."""
    return sum(group.blocks(request) for group in groups)


def printed(
    groups: Sequence[CacheGroup], num_blocks: int, request: Request, rules: Rules
) -> Printed:
    """Tokens and concurrency as the version prints them.

    v1/core/kv_cache_utils.py: get_kv_cache_capacity and get_max_concurrency_for_kv_cache_config;
    before 0.20.1 _report_kv_cache_config.
    """
    least = min(group.spec.block_size for group in groups)
    shared = num_blocks // len(groups) * least * request.dcp
    if not rules.concurrency_in_blocks:
        return Printed(shared, num_blocks * least / request.max_len)
    concurrency = num_blocks / _printed_blocks(groups, request, rules)
    if rules.tokens_by_concurrency:
        return Printed(int(concurrency * request.max_len), concurrency)
    return Printed(shared, concurrency)


def _printed_blocks(groups: Sequence[CacheGroup], request: Request, rules: Rules) -> int:
    """Blocks a request; before 0.27 its bytes over the first group's page."""
    if rules.blocks_summed:
        return max(1, request_blocks(groups, request))
    asked = sum(group.blocks(request) * group.page_bytes for group in groups)
    return max(1, ceil_div(asked, groups[0].page_bytes))
