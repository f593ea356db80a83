"""What to change of a logged start, each recomputed by the engine's rules on the logged pool.

A prediction is off by some of a GiB; a log is not. So a change is planned, and what it does to the
budget and to each term is done to the logged ones, in proportion where a term was logged:

    pool = logged pool + change of the budget − Σ change of a term × logged / predicted
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from kvplan.core.errors import KvplanError
from kvplan.core.ledger import Ledger
from kvplan.core.units import format_gib
from kvplan.engines.base import Asked, Change, EnginePlan
from kvplan.logs.facts import Start
from kvplan.logs.ledger import ledger_of
from kvplan.logs.pool import pool_of
from kvplan.planning.levers import changes_of
from kvplan.planning.question import Question

# Engines whose pool is what the budget leaves; of the others the length decides it.
OF_A_BUDGET = ("vllm", "sglang", "tensorrt-llm")
# Changes of what is asked, of the checkpoint, or of who shares a prompt are not of this start.
OTHER_QUESTIONS = ("--context", "--shared-prefix", "--set")
MOST = 8
WORTH_SAYING = 1.1  # times the sequences that ran


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """A flag to start with, what it gives, and that the engine then starts and holds a request."""

    flag: str
    value: str
    effect: str
    fits: bool

    def to_dict(self) -> dict[str, Any]:
        """The contract's row of ``suggestions``."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """The start as it was asked: its plan, and the pool and the terms that it really had."""

    question: Question
    plan: EnginePlan
    pool_bytes: int | None
    logged: Mapping[str, int]
    failed: bool

    @classmethod
    def of(cls, question: Question, start: Start) -> Base:
        """The base of a start. Where it failed for want of a pool and says no size, it had none."""
        plan = question.engine.plan(question.model, question.node, question.asked)
        pool = pool_of(start).num_bytes
        codes = {failure.code for failure in start.failures}
        if pool is None and codes & {"no_cache_memory", "out_of_memory"}:
            pool = min(0, plan.ledger.pool_bytes)
        if question.engine.name not in OF_A_BUDGET:
            pool = None
        logged = {term.name: term.num_bytes for term in ledger_of(start) if term.num_bytes > 0}
        return cls(question=question, plan=plan, pool_bytes=pool, logged=logged, failed=bool(codes))

    def as_logged(self, change: Change | None = None) -> EnginePlan | None:
        """The plan with a change on the logged pool; None where the engine refuses it."""
        engine = self.question.engine
        model, node, asked = (
            (self.question.model, self.question.node, self.question.asked)
            if change is None
            else (change.model, change.node, change.asked)
        )
        try:
            plan = engine.plan(model, node, asked) if change else self.plan
            if self.pool_bytes is None:
                return plan
            pool = self.pool_bytes + self._gain(plan)
            if pool <= 0:
                return None
            return engine.plan(model, node, replace(asked, pool_bytes=pool))
        except KvplanError:
            return None

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


def suggest(base: Base, start: Start) -> list[Suggestion]:
    """Changes that make a failed start fit, or that give a running one more, the plainest first."""
    now = base.as_logged()
    running = _sequences(now, base.question.asked.context)
    found: dict[tuple[str, str], Suggestion] = {}
    for change in _changes(base, start, now):
        plan = base.as_logged(change)
        if plan is None or not plan.starts or change.flag.startswith(OTHER_QUESTIONS):
            continue
        sequences = _sequences(plan, change.asked.context)
        if sequences < 1 or (not base.failed and sequences < WORTH_SAYING * running):
            continue
        flag, _, value = change.flag.partition(" ")
        if (flag, value) not in found and len(found) < MOST:
            effect = _effect(plan, change, sequences, None if base.failed else running)
            found[flag, value] = Suggestion(flag=flag, value=value, effect=effect, fits=True)
    return list(found.values())


def _sequences(plan: EnginePlan | None, context: int) -> int:
    return plan.capacity(context).sequences if plan is not None and plan.starts else 0


def _changes(base: Base, start: Start, now: EnginePlan | None) -> Iterator[Change]:
    """What the failure itself asks for, then the engine's own levers."""
    yield from _shorter(base, start, now)
    yield from _fewer_states(base, start)
    yield from changes_of(base.question.engine, base.plan)


def _shorter(base: Base, start: Start, now: EnginePlan | None) -> Iterator[Change]:
    """The longest length that fits: as the engine estimates it, else as the plan does."""
    codes = {failure.code for failure in start.failures}
    if not codes & {"length_exceeds_pool", "length_exceeds_model", "no_cache_memory"}:
        return
    stated = start.number("estimated_max_model_len") or start.number("model_max_len")
    planned = now.longest(1) if now is not None else 0
    for length in dict.fromkeys((int(stated or 0), planned)):
        if 0 < length < base.question.asked.context:
            yield _with(base, base.question.engine.length_flag, length, context=length)


def _fewer_states(base: Base, start: Start) -> Iterator[Change]:
    blocks = start.number("state_blocks")
    if blocks and base.question.engine.flags.find("--max-num-seqs"):
        yield _with(base, "--max-num-seqs", int(blocks))


def _with(base: Base, flag: str, value: int, context: int | None = None) -> Change:
    asked: Asked = base.question.asked
    changed = replace(
        asked,
        flags={**asked.flags, flag: value},
        context=asked.context if context is None else context,
    )
    return Change(flag, f"{flag} {value}", base.question.model, base.question.node, changed)


def _effect(plan: EnginePlan, change: Change, sequences: int, running: int | None) -> str:
    """What it gives, and the lever's own note."""
    holds = f"{sequences:,} × {change.asked.context:,} tokens in {format_gib(plan.pool.num_bytes)}"
    before = f" (now {running:,})" if running is not None else ""
    note = f"; {change.note}" if change.note else ""
    return f"holds {holds}{before}{note}"
