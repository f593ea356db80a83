"""SGLang: the static fraction of what is free, spent on weights and pools.

    before   free memory before the weights                memory − context and communication
    rest     free after them − before × (1 − mem_fraction_static)
    tokens   rest ÷ bytes of a token on a rank; states first

What the fraction leaves is for activations and graphs, which SGLang does not measure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from kvplan.core.model import Model
from kvplan.engines.base import Asked, Change, Engine, EnginePlan, Node
from kvplan.engines.flags import FlagTable
from kvplan.engines.releases import release
from kvplan.engines.sglang import levers, report
from kvplan.engines.sglang.cells import Cells, cells
from kvplan.engines.sglang.flags import FLAGS
from kvplan.engines.sglang.memory import memory
from kvplan.engines.sglang.plan import SGLangPlan
from kvplan.engines.sglang.pools import (
    Pools,
    cache_bytes,
    draft_cell,
    padding_bytes,
    slots_and_rest,
    tokens_of,
)
from kvplan.engines.sglang.prints import log_lines
from kvplan.engines.sglang.requests import running_requests
from kvplan.engines.sglang.rules import NEWEST, OLDEST, Rules, rules_of
from kvplan.engines.sglang.settings import Settings, resolve


class SGLangEngine(Engine):
    """SGLang 0.4.3 to 0.5.23."""

    name: ClassVar[str] = "sglang"
    how: ClassVar[str] = "a static fraction of the free memory, pools counted in tokens"
    versions: ClassVar[tuple[str, str]] = (OLDEST, NEWEST)
    flags: ClassVar[FlagTable] = FLAGS
    length_flag: ClassVar[str] = "--context-length"
    not_on: ClassVar[tuple[str, ...]] = ("Apple",)

    def plan(self, model: Model, node: Node, asked: Asked) -> SGLangPlan:
        """The pools of one rank.

        Raises:
            BadValue: an unknown release, a layout that does not divide, a cache without a pool.
        """
        known = release("SGLang", asked.version, *self.versions)
        rules = rules_of(known.version)
        settings = resolve(model, node, asked, known, rules)
        found = cells(model, settings, rules)
        free = memory(model, node, asked, settings)
        if asked.pool_bytes is None:
            pools = _pools(free.rest(model, settings, rules), found, settings, rules)
        else:
            pools = _stated_pools(asked.pool_bytes, found, settings, rules)
        running = running_requests(pools, settings, rules, states=bool(found.slot))
        allocated = cache_bytes(pools, found, settings) if pools.max_total_tokens else 0
        stated = asked.pool_bytes is not None
        caches = allocated if asked.pool_bytes is None else asked.pool_bytes
        term = report.cache_term(caches, free, stated=stated)
        reason = report.reason(free, found, settings, pools, running)
        return SGLangPlan(
            engine=self.name,
            version=known.text,
            model=model,
            node=node,
            asked=asked,
            launch=settings.launch,
            ledger=report.ledger(node, free, found, settings, pools, term),
            pool=report.pool(caches, pools, found, settings),
            starts=reason is None,
            reason=reason,
            prints=tuple(log_lines(pools, found, settings, running.requests)),
            command=report.command(model, settings, asked.flags),
            replicas=settings.replicas,
            warnings=report.warnings(known, model, node, free, settings, found),
            settings=settings,
            cells=found,
            pools=pools,
            running=running,
            weights=free.weights,
        )

    def changes(self, plan: EnginePlan) -> Iterator[Change]:
        """Fraction, format, window ratio, state type, longest request, cards."""
        assert isinstance(plan, SGLangPlan)
        return levers.changes(plan)


def _pools(rest: float, found: Cells, settings: Settings, rules: Rules) -> Pools:
    """What a budget buys."""
    slots, left = slots_and_rest(rest, found, settings, rules)
    full, window = tokens_of(left, found, settings, draft_cell(found, settings))
    return Pools(full, window, slots)


def _stated_pools(caches: int, found: Cells, settings: Settings, rules: Rules) -> Pools:
    """The pools of a log's sizes: the target's caches of tokens, a page of padding in each.

    States have a line of their own and are not among them: their share follows from the ratio.
    """
    whole = caches * (1 + settings.state_ratio)
    slots = slots_and_rest(whole, found, settings, rules).slots
    tokens = caches - padding_bytes(found, settings)
    full, window = tokens_of(tokens, found.as_allocated(), settings, 0)
    return Pools(full, window, slots)
