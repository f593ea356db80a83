"""How many requests may run at once, by the pool, the flag and the slots of states.

SGLang kv_cache_configurator.py (0.5.23), resolve_max_num_reqs; before that model_runner.py and
managers/tp_worker.py.
"""

from __future__ import annotations

from typing import NamedTuple

from kvplan.engines.sglang.pools import Pools
from kvplan.engines.sglang.rules import Rules
from kvplan.engines.sglang.settings import Settings

LEAST, MOST, CONTEXTS = 2048, 4096, 512


class Running(NamedTuple):
    """The cap on one rank, and what sets it."""

    requests: int
    by: str


def running_requests(pools: Pools, settings: Settings, rules: Rules, *, states: bool) -> Running:
    """The ``max_running_requests`` that the log prints."""
    tokens = pools.max_total_tokens
    estimate = max(min(int(tokens / settings.context * CONTEXTS), MOST), LEAST)
    if settings.max_requests is None:
        found = min(estimate, tokens // 2) if rules.half_of_tokens else estimate
        by = "pool"
    else:
        found = max(1, settings.max_requests // (settings.dp if settings.dp_attention else 1))
        bound = {"nothing": found, "estimate": estimate, "half": tokens // 2}
        found, by = min(found, bound[rules.given_requests]), "max_running_requests"
    if states:
        slots = pools.slots // settings.slots_a_request
        if slots < found:
            return Running(slots, "state")
    return Running(found, by)
