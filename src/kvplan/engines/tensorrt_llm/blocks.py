"""Bytes to blocks, one pool a window.

    tokens = ⌊bytes ÷ bytes of a token⌋, capped by max_tokens
    blocks = ⌈tokens ÷ tokens a block⌉        rounded up: the pool may pass its share by a part

With several windows each has an equal share of the bytes, its blocks rounded down, and no cap.
TensorRT-LLM 0.19, cpp/tensorrt_llm/batch_manager/kvCacheManager.cpp;
tensorrt_llm/_torch/pyexecutor/resource_manager.py (1.0).
"""

from __future__ import annotations

from typing import NamedTuple

from kvplan.core.units import ceil_div
from kvplan.engines.tensorrt_llm.cells import Cells
from kvplan.engines.tensorrt_llm.settings import Settings


class WindowPool(NamedTuple):
    """The blocks of the layers of one window."""

    window: int
    layers: int
    token_bytes: int
    blocks: int
    tokens: int


def window_pools(num_bytes: int, cells: Cells, settings: Settings) -> tuple[WindowPool, ...]:
    """Every window's pool; the longest window is last."""
    if not cells.windows:
        return ()
    if len(cells.windows) == 1:
        window, layers, size = cells.windows[0]
        tokens = max(0, num_bytes) // size
        if settings.max_tokens is not None:
            tokens = min(tokens, settings.max_tokens)
        blocks = ceil_div(tokens, settings.block)
        if settings.whole_blocks:
            tokens = blocks * settings.block
        return (WindowPool(window, layers, size, blocks, tokens),)
    share = max(0, num_bytes) // len(cells.windows)
    return tuple(
        WindowPool(window, layers, size, blocks, blocks * settings.block)
        for window, layers, size in cells.windows
        for blocks in (share // (size * settings.block),)
    )


def blocks_of(context: int, pool: WindowPool, settings: Settings) -> int:
    """Blocks that a sequence of so many tokens holds in one pool, for all its beams."""
    return ceil_div(min(context, pool.window), settings.block) * settings.beams


def allocated_bytes(pools: tuple[WindowPool, ...], settings: Settings) -> int:
    """Bytes of all pools as they are allocated."""
    if not settings.whole_blocks:
        return sum(pool.tokens * pool.token_bytes for pool in pools)
    return sum(pool.blocks * settings.block * pool.token_bytes for pool in pools)


def first_pass_tokens(settings: Settings) -> int:
    """Tokens of the small pool of the PyTorch backend's measuring pass.

    Dummy prompts fill ``max_num_tokens``, each with a token more, in whole blocks
    (tensorrt_llm/_torch/pyexecutor/_util.py).
    """
    longest = max(1, min(settings.max_num_tokens, settings.max_seq_len - 1))
    whole, rest = divmod(settings.max_num_tokens, longest)
    blocks = whole * ceil_div(longest + 1, settings.block)
    if rest:
        blocks += ceil_div(rest + 1, settings.block)
    return blocks * settings.block
