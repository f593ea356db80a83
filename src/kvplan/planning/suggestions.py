"""What to change of a logged start, each change recomputed by the engine on its own pool."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from kvplan.core.units import format_gib
from kvplan.engines.base import Asked, Change, EnginePlan
from kvplan.logs.facts import UNTOLD, Start
from kvplan.logs.findings import Finding
from kvplan.planning.levers import changes_of
from kvplan.planning.started_as import Base

# Changes of what is asked, of the checkpoint, or of who shares a prompt are not of this start.
OTHER_QUESTIONS = ("--context", "--shared-prefix", "--set")
COPIES = ("--data-parallel-size", "--dp-size")  # a second start that fails as the first
MOST = 8
MOST_NOT_ENOUGH = 4
WORTH_SAYING = 1.1  # times the sequences that ran
# Failures that no plan can answer.
WITHOUT_LEVER = {UNTOLD, "profile_disturbed", "sampler_exceeds_memory"}
# Facts that an error states the longest length as; V0 as the tokens of all its blocks.
LONGEST = ("estimated_max_model_len", "model_max_len", "kv_tokens")
OUTSIDE_POOL = ("encoder", "sampler")
LENGTHS = ("length_exceeds_pool", "length_exceeds_model", "no_cache_memory")


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


@dataclass(slots=True)
class Advice:
    """Changes that fit, and those that a person would try and that do not."""

    suggestions: list[Suggestion] = field(default_factory=list)
    not_enough: list[Finding] = field(default_factory=list)


def advise(base: Base, start: Start) -> Advice:
    """Changes that make a failed start fit, or that give a running one more, the plainest first."""
    if base.failed and _without_lever(start):
        return Advice()
    now = base.as_logged()
    running = None if base.failed else _sequences(now, base.question.asked.context)
    advice = Advice()
    seen = set()
    for change in _changes(base, start, now):
        others = (*OTHER_QUESTIONS, *(COPIES if base.failed else ()))
        if change.flag in seen or change.flag.startswith(others):
            continue
        seen.add(change.flag)
        plan = base.as_logged(change)
        sequences = _sequences(plan, change.asked.context)
        if plan is not None and sequences and sequences >= WORTH_SAYING * (running or 0):
            if len(advice.suggestions) < MOST:
                advice.suggestions.append(_suggestion(plan, change, sequences, running))
        elif base.failed and not sequences:
            _not_enough(advice, base, change, plan)
    return advice


def _without_lever(start: Start) -> bool:
    """Whether the failure is none of the pool's: what makes room for a cache makes none for it."""
    codes, stage = {failure.code for failure in start.failures}, start.last("stage")
    outside = stage is not None and stage.value in OUTSIDE_POOL
    return codes <= WITHOUT_LEVER or (outside and codes <= {UNTOLD, "out_of_memory"})


def _sequences(plan: EnginePlan | None, context: int) -> int:
    return plan.capacity(context).sequences if plan is not None and plan.starts else 0


def _changes(base: Base, start: Start, now: EnginePlan | None) -> Iterator[Change]:
    """What the failure itself asks for, then the engine's own levers."""
    codes = {failure.code for failure in start.failures}
    if codes & set(LENGTHS):
        yield from _shorter(base, start, now)
    if "length_exceeds_model" in codes:
        return  # nothing but a length helps
    if "states_exceed_pool" in codes:
        yield from _fewer_states(base, start)
        return
    for change in changes_of(base.question.engine, base.plan):
        yield change
        if base.failed:
            yield from _and_shorter(base, change)


def _shorter(base: Base, start: Start, now: EnginePlan | None) -> Iterator[Change]:
    """The longest length that fits: as the engine estimates it, else as the plan does."""
    stated = next(filter(None, map(start.number, LONGEST)), None)
    asked = Change("", "", base.question.model, base.question.node, base.question.asked)
    planned = _admitted(base, asked, now.longest(1)) if now is not None else 0
    for length in (int(stated or 0), planned):
        if 0 < length < _longest(base.plan):
            change = _with(base, base.question.engine.length_flag, length, context=length)
            yield change
            if _sequences(base.as_logged(change), length):
                return


def _fewer_states(base: Base, start: Start) -> Iterator[Change]:
    """As many sequences as there are blocks for their states; or no graphs that need them all."""
    blocks = start.number("state_blocks")
    if blocks:
        yield _with(base, "--max-num-seqs", int(blocks))
    for change in changes_of(base.question.engine, base.plan):
        if change.flag == "--enforce-eager":
            yield change


def _longest(plan: EnginePlan) -> int:
    """The length that a plan is for."""
    return plan.pool.max_model_len or plan.asked.context


def _and_shorter(base: Base, change: Change) -> Iterator[Change]:
    """A change that makes room, but not for the length, with the length that it makes room for."""
    plan, flag = base.as_logged(change), base.question.engine.length_flag
    if plan is None or _sequences(plan, change.asked.context) or not flag:
        return
    length = _admitted(base, change, plan.longest(1))
    if 0 < length < _longest(plan):
        at = _at_length(change, flag, length)
        yield change._replace(flag=f"{change.flag} {flag} {length}", asked=at.asked)


def _admitted(base: Base, change: Change, length: int) -> int:
    """The length, or the shorter one that vLLM's own check takes.

    0.14 to 0.16 ask for the layers of all stages of a pipeline on each card.
    """
    flag = base.question.engine.length_flag
    plan = base.as_logged(_at_length(change, flag, length)) if length > 0 else None
    if plan is None or plan.starts or base.question.engine.name != "vllm":
        return length
    auto = base.question.engine.flags.parse({flag: "auto"})[flag]
    settled = base.as_logged(_at_length(change, flag, auto))
    most = settled.pool.max_model_len if settled is not None and settled.starts else None
    return min(length, most) if most else length


def _at_length(change: Change, flag: str, length: int) -> Change:
    """The change with a longest length; -1 is the engine's own choice."""
    asked = replace(
        change.asked,
        flags={**change.asked.flags, flag: length},
        context=min(length, change.asked.context) if length > 0 else change.asked.context,
    )
    return change._replace(asked=asked)


def _with(base: Base, flag: str, value: int, context: int | None = None) -> Change:
    asked: Asked = base.question.asked
    changed = replace(
        asked,
        flags={**asked.flags, flag: value},
        context=asked.context if context is None else context,
    )
    return Change(flag, f"{flag} {value}", base.question.model, base.question.node, changed)


def _suggestion(
    plan: EnginePlan, change: Change, sequences: int, running: int | None
) -> Suggestion:
    """What it gives, and the lever's own note."""
    flag, _, value = change.flag.partition(" ")
    holds = f"{sequences:,} × {change.asked.context:,} tokens in {format_gib(plan.pool.num_bytes)}"
    before = f" (now {running:,})" if running is not None else ""
    note = f"; {change.note}" if change.note else ""
    return Suggestion(flag=flag, value=value, effect=f"holds {holds}{before}{note}", fits=True)


def _not_enough(advice: Advice, base: Base, change: Change, plan: EnginePlan | None) -> None:
    """A lever that leaves the start failing, with the arithmetic."""
    if len(advice.not_enough) >= MOST_NOT_ENOUGH:
        return
    pool = base.pool_with(change)
    if plan is not None and plan.reason:
        needed, length = plan.sequence_bytes(_longest(plan)), _longest(plan)
        why = plan.reason
        if needed > plan.pool.num_bytes:
            left = format_gib(plan.pool.num_bytes)
            why = f"{length:,} tokens need {format_gib(needed)}, and {left} are left."
    elif pool is not None and pool <= 0:
        why = f"{format_gib(pool)} are left for the cache."
    else:
        return
    message = f"{change.flag} alone is not enough: {why}"
    numbers = {"flag": change.flag, "pool_bytes": pool}
    advice.not_enough.append(Finding("lever_not_enough", "note", message, numbers))
