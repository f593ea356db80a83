"""HiCache: host pools behind the card's, each rank with its own.

    --hicache-ratio 2          as many times the tokens (and slots) of the card's pools
    --hicache-size 30          GB (10⁹) of each rank, dealt to its pools as they weigh on the card

Every layout (layer_first, page_first, page_first_direct, …) orders the same bytes. SGLang 0.5.23,
mem_cache: pool_host/base.py (HostKVCache), pool_host/mamba.py, hybrid_cache/hybrid_pool_assembler.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from kvplan.core.tier import Tier
from kvplan.core.units import format_bytes
from kvplan.engines.sglang.cells import Cells
from kvplan.engines.sglang.pools import Pools
from kvplan.engines.sglang.rules import Rules
from kvplan.engines.sglang.settings import HiCache, Settings

GB: Final = 10**9
SMALLER = "The host pool is smaller than the card's: {}."
V4_SIZE = "DeepSeek V4 takes --hicache-ratio alone."


class _Pool(NamedTuple):
    """One pool of the card: its entries, bytes of one, entries of a page."""

    entries: int
    each: int
    page: int


def tier_of(pools: Pools, cells: Cells, settings: Settings, rules: Rules) -> Tier | None:
    """The tier of a start; None where it asks for none."""
    hicache = settings.hicache
    if hicache is None or not pools.max_total_tokens:
        return None
    page = settings.page
    full = _Pool(pools.max_total_tokens, _token_bytes(cells), page)
    window = _Pool(pools.window, cells.window.printed, page)
    states = _Pool(pools.slots, cells.slot, 1)
    held = [
        pool
        for pool in (full, *([window] if pools.full else []), states)
        if pool.entries * pool.each
    ]
    on_card = sum(pool.entries * pool.each for pool in held)
    sizes = [_entries(pool, hicache, on_card, rules) for pool in held]
    rank = sum(size * pool.each for size, pool in zip(sizes, held, strict=True))
    ranks = settings.tp * settings.pp
    tokens = sizes[0] if held and held[0] is full else 0
    return Tier(
        name="hicache",
        rank_bytes=rank,
        host_bytes=rank * ranks * settings.replicas,
        ranks=ranks,
        block_tokens=page,
        rank_block_bytes=page * full.each,
        fixed_bytes=_window_bytes(cells, settings, pools) + cells.slot * bool(pools.slots),
        tokens=tokens,
        source=f"{hicache.said}: {tokens:,} tokens beside {full.entries:,} on the card, "
        f"{format_bytes(rank)} a rank",
        notes=_notes(tokens, full, cells, settings, rules),
    )


def _token_bytes(cells: Cells) -> int:
    if cells.compressed:
        return int(cells.compressed)
    return cells.full.printed or cells.window.printed


def _window_bytes(cells: Cells, settings: Settings, pools: Pools) -> int:
    """What a prefix needs of the windows' own pool."""
    if not (cells.window_layers and pools.full):
        return 0
    return (cells.window_tokens + settings.page) * cells.window.printed


def _entries(pool: _Pool, hicache: HiCache, on_card: int, rules: Rules) -> int:
    """Entries of a pool's host side; a page more since the pools are rounded up."""
    if hicache.size_gb:
        share = hicache.size_gb * pool.entries * pool.each / on_card
        entries = int(share * GB // pool.each)
    else:
        entries = int(pool.entries * hicache.ratio)
    pages = entries // pool.page + (1 if rules.host_page_more else 0)
    return pages * pool.page


def _notes(
    tokens: int, full: _Pool, cells: Cells, settings: Settings, rules: Rules
) -> tuple[str, ...]:
    assert settings.hicache is not None
    found = []
    if tokens <= full.entries:
        found.append(
            SMALLER.format(
                "it helps less" if rules.host_may_be_smaller else "this release does not start so"
            )
        )
    if cells.compressed and settings.hicache.size_gb:
        found.append(V4_SIZE)
    if cells.latent and settings.attention_tp > 1:
        found.append("Latent rows are the same on every rank, and each keeps its own copy.")
    return tuple(found)
