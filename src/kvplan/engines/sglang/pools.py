"""A budget of bytes to tokens and slots, and tokens back to bytes.

    full    = ⌊rest ÷ (F + ratio × W)⌋, down to a page       F, W: a token in all layers of a kind
    window  = ⌊full × ratio⌋, down to a page
    slots   = what is asked, or a share of the rest: state ÷ cache = mamba_full_memory_ratio

Allocated is a page more than the tokens of each pool, and one slot more.
"""

from __future__ import annotations

from typing import NamedTuple

from kvplan.engines.sglang.cells import Cells, Row
from kvplan.engines.sglang.rules import Rules
from kvplan.engines.sglang.settings import Settings


class Pools(NamedTuple):
    """Tokens of the full and of the window pool, and slots of states, of one rank."""

    full: int
    window: int
    slots: int

    @property
    def max_total_tokens(self) -> int:
        """The figure that SGLang prints as ``max_total_num_tokens``."""
        return self.full or self.window


class Budget(NamedTuple):
    """Slots, and the bytes that are left to the caches of tokens."""

    slots: int
    rest: float


def slots_and_rest(rest: float, cells: Cells, settings: Settings, rules: Rules) -> Budget:
    """The states' part of a budget.

    kv_cache_configurator.py (0.5.23), _handle_max_mamba_cache.
    """
    slot = cells.slot
    if not slot:
        return Budget(0, rest)
    drafts = settings.draft_tokens
    if rules.states_times_drafts:
        slots = _asked_slots(settings)
        each = slot * (1 + drafts)
        if slots is None:
            slots = int(_state_share(rest, settings) // each)
        return Budget(slots, rest - slots * each)
    padding = 1 if rules.padding_slot_counted else 0
    slots = _asked_slots(settings)
    if slots is None:
        share = _state_share(rest, settings) - slot * padding
        slots = int(share // slot) if not drafts else _slots_with_drafts(share, cells, settings)
    slots = max(0, slots)
    running = min(_wanted(settings, slots), slots // settings.slots_a_request)
    verified = slot * (running + padding) * drafts if drafts else 0
    return Budget(slots, rest - verified - (slots + padding) * slot)


def _asked_slots(settings: Settings) -> int | None:
    """Slots that a flag fixes on one rank: themselves, or without radix cache one a request."""
    dp = settings.dp if settings.dp_attention else 1
    if settings.slots is not None:
        return settings.slots // dp
    if not settings.radix and settings.max_requests is not None:
        return max(1, settings.max_requests // dp)
    return None


def _wanted(settings: Settings, otherwise: int) -> int:
    dp = settings.dp if settings.dp_attention else 1
    return otherwise if settings.max_requests is None else max(1, settings.max_requests // dp)


def _state_share(rest: float, settings: Settings) -> float:
    return max(0.0, rest) * settings.state_ratio / (1 + settings.state_ratio)


def _slots_with_drafts(share: float, cells: Cells, settings: Settings) -> int:
    """Slots that leave room for the states of the draft tokens of each request."""
    drafts = settings.draft_tokens
    each = cells.slot * (1 + drafts / settings.slots_a_request)
    return int((share - cells.slot * drafts) // each)


def draft_cell(cells: Cells, settings: Settings) -> int:
    """What the draft's cache adds to the budget's cell."""
    return cells.draft.budget if settings.draft_counted else 0


def tokens_of(rest: float, cells: Cells, settings: Settings, draft: int) -> tuple[int, int]:
    """Full and window tokens that a budget buys, capped by ``--max-total-tokens``."""
    page, ratio = settings.page, settings.window_ratio
    rest = max(0.0, rest)
    if cells.compressed:
        full = int(rest / cells.compressed)
    elif not cells.window_layers:
        cell = cells.full.budget + draft
        full = int(rest) // cell if cell else settings.max_tokens or settings.context
    elif not cells.full_layers:
        window = int(rest // (cells.window.budget + draft))
        return 0, _capped(window, settings) // page * page
    else:
        full = int(rest // (cells.full.budget + ratio * cells.window.budget + draft))
    full = _capped(full, settings) // page * page
    pooled = bool(cells.window_layers or cells.compressed)
    return full, int(full * ratio) // page * page if pooled else 0


def _capped(tokens: int, settings: Settings) -> int:
    return tokens if settings.max_tokens is None else min(tokens, settings.max_tokens)


def padding_bytes(cells: Cells, settings: Settings) -> int:
    """The page more that each pool has."""
    window = cells.window.printed if cells.window_layers else 0
    return settings.page * (cells.full.printed + window)


def allocated(row: Row, tokens: int, settings: Settings) -> Row:
    """A pool's bytes as it is allocated."""
    if not row.printed:
        return row
    return Row().plus(row, tokens + settings.page)


def cache_bytes(pools: Pools, cells: Cells, settings: Settings) -> int:
    """All caches of tokens of the target, as SGLang's lines print them together."""
    if cells.compressed:
        return int(pools.full * cells.compressed)
    full = allocated(cells.full, pools.full, settings).printed
    return full + allocated(cells.window, pools.window, settings).printed
