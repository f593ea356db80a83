"""What SGLang's pools hold: requests of a length, and the length of a number of requests."""

from __future__ import annotations

from dataclasses import dataclass

from kvplan.core.tier import Tier
from kvplan.core.units import ceil_div, round_up
from kvplan.core.version import Version
from kvplan.engines.base import Capacity, EnginePlan
from kvplan.engines.demand import UNBOUNDED
from kvplan.engines.sglang.cells import Cells
from kvplan.engines.sglang.hicache import tier_of
from kvplan.engines.sglang.pools import Pools
from kvplan.engines.sglang.requests import Running
from kvplan.engines.sglang.rules import NEWEST, rules_of
from kvplan.engines.sglang.settings import Settings
from kvplan.engines.weights import RankWeights, read_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class SGLangPlan(EnginePlan):
    """A start of SGLang. A rank's pools serve its own requests; ``replicas`` of it run apart."""

    settings: Settings
    cells: Cells
    pools: Pools
    running: Running
    weights: RankWeights

    @property
    def tiers(self) -> tuple[Tier, ...]:
        """HiCache, where it is on."""
        rules = rules_of(Version.parse(self.version or NEWEST))
        found = tier_of(self.pools, self.cells, self.settings, rules)
        return () if found is None else (found,)

    @property
    def weights_read_bytes(self) -> int:
        """The rank's tensors without what is looked up."""
        return read_bytes(self.model, self.weights)

    def capacity(self, context: int) -> Capacity:
        """Whole requests of so many tokens: both pools, the slots and the cap."""
        if not self.starts:
            return Capacity(0, "memory")
        if context > self.settings.context:
            return Capacity(0, "context_length")
        bounds = {
            "pool": self._in_full(context),
            "window_pool": self._in_window(context),
            self.running.by if self.running.by != "pool" else "max_running_requests": (
                self.running.requests
            ),
        }
        limit = min(bounds, key=bounds.__getitem__)
        return Capacity(bounds[limit] * self.replicas, limit)

    def _in_full(self, context: int) -> int:
        shared = min(self.asked.shared_prefix, context) // self.settings.page * self.settings.page
        if not self.pools.full:
            return UNBOUNDED
        own = round_up(context, self.settings.page) - shared
        return max(0, self.pools.full - shared) // own if own else self.running.requests

    def _in_window(self, context: int) -> int:
        """One request in prefill holds a chunk; those that decode a window and a page.

        managers/schedule_policy.py (0.5.12).
        """
        window, page = self.cells.window_tokens, self.settings.page
        if not window:
            return UNBOUNDED
        longest = round_up(context, page)
        first = min(longest, max(window, self.settings.chunk) + page)
        left = self.pools.window - first
        return 0 if left < 0 else 1 + left // min(longest, window + page)

    def longest(self, sequences: int) -> int:
        """The full pool shared evenly, up to the longest request."""
        each = ceil_div(sequences, self.replicas)
        if not self.starts or each > self.running.requests:
            return 0
        page, limit = self.settings.page, self.settings.context
        found = limit
        if self.pools.full:
            found = min(limit, self.pools.full // each // page * page)
        if self.cells.window_tokens and self._in_window(found) < each:
            found = min(found, self.pools.window // each // page * page)
        return found

    def sequence_bytes(self, context: int) -> int:
        """Pages of both pools, and the slots of a request."""
        page = self.settings.page
        if self.cells.compressed:
            return int(round_up(context, page) * self.cells.compressed)
        window = min(round_up(context, page), self.cells.window_tokens + page)
        tokens = round_up(context, page) * self.cells.full.printed
        states = self.cells.slot * self.settings.slots_a_request
        return tokens + window * self.cells.window.printed + states

    def read_bytes(self, context: int, sequences: int) -> int:
        """Every full token, the window's tokens and one state of each request."""
        if self.cells.compressed:
            return int(context * self.cells.compressed) * sequences
        window = min(context, self.cells.window_tokens) * self.cells.window.printed
        return sequences * (context * self.cells.full.printed + window + self.cells.slot)
