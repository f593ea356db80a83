"""The lines of SGLang's log that a plan predicts; its "GB" are GiB."""

from __future__ import annotations

from collections.abc import Iterator

from kvplan.core.units import GIB
from kvplan.engines.sglang.cells import Cells, Row
from kvplan.engines.sglang.pools import Pools, allocated
from kvplan.engines.sglang.settings import Settings


def log_lines(pools: Pools, cells: Cells, settings: Settings, requests: int) -> Iterator[str]:
    """The lines of start-up, in order."""
    if pools.slots:
        slots = pools.slots + 1
        yield (
            f"Mamba Cache is allocated. max_mamba_cache_size: {pools.slots}, "
            f"conv_state size: {gb(slots * cells.conv_bytes)}GB, "
            f"ssm_state size: {gb(slots * cells.state_bytes)}GB"
        )
    if cells.compressed:
        yield f"DSV4 pool sizes: full={pools.full}, swa={pools.window}, c4={pools.full // 4}, …"
    elif cells.window_layers:
        window = allocated(cells.window, pools.window, settings)
        full = allocated(cells.full, pools.full, settings)
        yield (
            "Use sliding window memory pool. "
            f"full_layer_tokens={pools.full}, swa_layer_tokens={pools.window}"
        )
        yield _pool(pools.window, window, cells, settings)
        yield _pool(pools.full, full, cells, settings)
        yield (
            f"SWAKVPool mem usage: {gb(window.printed + full.printed)} GB, "
            f"swa size: {pools.window}, full size: {pools.full}"
        )
    else:
        yield _pool(pools.full, allocated(cells.full, pools.full, settings), cells, settings)
    if cells.draft.printed:
        yield _pool(pools.full, allocated(cells.draft, pools.full, settings), cells, settings)
    yield (
        f"max_total_num_tokens={pools.max_total_tokens}, chunked_prefill_size={settings.chunk}, "
        f"max_prefill_tokens={settings.prefill}, max_running_requests={requests}, "
        f"context_len={settings.context}"
    )


def _pool(tokens: int, row: Row, cells: Cells, settings: Settings) -> str:
    start = f"KV Cache is allocated. dtype: {settings.elements.torch_name}, #tokens: {tokens}, "
    if cells.latent:
        return f"{start}KV size: {gb(row.printed)} GB"
    return f"{start}K size: {gb(row.keys + row.indexer)} GB, V size: {gb(row.values)} GB"


def gb(num_bytes: int) -> str:
    """Bytes as SGLang prints them."""
    return f"{num_bytes / GIB:.2f}"
