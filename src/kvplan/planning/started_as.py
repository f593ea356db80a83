"""A start as it was asked and as it was logged: its plan on the pool that it really had.

A prediction is off by some of a GiB; a log is not. So a change is planned, and what it does to the
budget and to each term is done to the logged ones, in proportion where a term was logged:

    pool = logged pool + change of the budget − Σ change of a term × logged / predicted
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kvplan.core.errors import KvplanError
from kvplan.core.ledger import Ledger
from kvplan.engines.base import Change, EnginePlan
from kvplan.logs.facts import Start
from kvplan.logs.infer import Inferred
from kvplan.logs.ledger import ledger_of
from kvplan.logs.pool import pool_of
from kvplan.planning.question import Question

# Engines whose pool is what the budget leaves; of the others the length decides it.
OF_A_BUDGET = ("vllm", "sglang", "tensorrt-llm")
WITHOUT_POOL = ("no_cache_memory", "out_of_memory")


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """The start as it was asked: its plan, and the pool and the terms that it really had.

    ``figured`` is the pool where no line states its bytes and the plan's sizes tell it.
    """

    question: Question
    plan: EnginePlan
    pool_bytes: int | None
    figured: Inferred | None
    logged: Mapping[str, int]
    failed: bool

    @classmethod
    def of(cls, question: Question, start: Start) -> Base:
        """The base of a start. One that failed for want of a pool and states none had none."""
        plan = question.engine.plan(question.model, question.node, question.asked)
        pool, figured = pool_of(start).num_bytes, None
        if pool is None:
            figured = figured_pool(plan, start)
            pool = int(figured.value) if figured is not None else None
        codes = {failure.code for failure in start.failures}
        if pool is None and codes & set(WITHOUT_POOL):
            pool = min(0, plan.ledger.pool_bytes)
        return cls(
            question=question,
            plan=plan,
            pool_bytes=pool if question.engine.name in OF_A_BUDGET else None,
            figured=figured,
            logged={term.name: term.num_bytes for term in ledger_of(start) if term.num_bytes > 0},
            failed=bool(codes),
        )

    def as_logged(self, change: Change | None = None) -> EnginePlan | None:
        """The plan with a change, on the logged pool; None where there is none."""
        q = self.question
        asked = q.asked if change is None else change.asked
        model, node = (q.model, q.node) if change is None else (change.model, change.node)
        pool = self.pool_with(change)
        if pool is not None and pool <= 0:
            return None
        try:
            return q.engine.plan(model, node, replace(asked, pool_bytes=pool))
        except KvplanError:
            return None

    def pool_with(self, change: Change | None) -> int | None:
        """The logged pool after a change; None where it is not known or not of a budget."""
        if self.pool_bytes is None or change is None:
            return self.pool_bytes
        try:
            plan = self.question.engine.plan(change.model, change.node, change.asked)
        except KvplanError:
            return None
        return self.pool_bytes + self._gain(plan)

    def _gain(self, plan: EnginePlan) -> int:
        """What another plan's pool has more, by the logged sizes of what makes room."""
        before, after = _inside(self.plan.ledger), _inside(plan.ledger)
        budget = plan.ledger.pool_bytes + sum(after.values())
        gain: float = budget - self.plan.ledger.pool_bytes - sum(before.values())
        for name in {*before, *after}:
            own = before.get(name, 0)
            scale = self.logged[name] / own if own and name in self.logged else 1.0
            gain -= (after.get(name, 0) - own) * scale
        return round(gain)


def _inside(ledger: Ledger) -> dict[str, int]:
    """The terms that the budget pays for, beside the pool."""
    found: dict[str, int] = {}
    for term in ledger.terms[:-1]:
        if term.inside_budget and not term.on_host:
            found[term.name] = found.get(term.name, 0) + term.num_bytes
    return found


def figured_pool(plan: EnginePlan, start: Start) -> Inferred | None:
    """The pool's bytes from its blocks, tokens or concurrency, by the sizes of the plan."""
    pool, logged = plan.pool, pool_of(start)
    blocks = start.number("num_gpu_blocks") or start.number("state_blocks")
    if blocks is None and logged.tokens and pool.block_size and len(pool.groups) < 2:
        blocks = logged.tokens / pool.block_size
    if blocks and pool.bytes_per_block:
        how = f"{blocks:,.0f} blocks × {pool.bytes_per_block:,} B"
        return Inferred("kv_pool_bytes", round(blocks * pool.bytes_per_block), "bytes", how)
    if logged.concurrency and logged.length:
        own = plan.sequence_bytes(logged.length)
        how = f"{logged.concurrency:g} requests × {own:,} B"
        return Inferred("kv_pool_bytes", round(logged.concurrency * own), "bytes", how)
    return None
