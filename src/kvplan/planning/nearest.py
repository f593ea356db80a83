"""The nearest values that work where the answer is no: one change each, by the engine's rules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kvplan.core.errors import KvplanError
from kvplan.engines.base import Change, Engine, EnginePlan
from kvplan.planning.levers import changes_of

MOST_CARDS: Final = 64
MORE_CARDS: Final = "twice the cards"
MOST: Final = 3
# Changes of the question itself, and of the checkpoint, are levers but no values of this start.
OTHER_QUESTIONS: Final = ("--context", "--shared-prefix", "--set")


def nearest(engine: Engine, plan: EnginePlan, wanted: int) -> list[str]:
    """Up to three changes, each of which alone makes room for the wanted sequences."""
    found = []
    for flag in _that_work(engine, plan, wanted):
        found.append(flag)
        if len(found) == MOST:
            break
    return found


def _that_work(engine: Engine, plan: EnginePlan, wanted: int) -> Iterator[str]:
    for change in changes_of(engine, plan):
        if change.name == MORE_CARDS:
            yield from _cards(engine, change, wanted)
        elif not change.flag.startswith(OTHER_QUESTIONS) and _works(_asked(engine, change), wanted):
            yield change.flag


def _cards(engine: Engine, change: Change, wanted: int) -> Iterator[str]:
    """The fewest cards that do, by doubling."""
    while change.node.gpus <= MOST_CARDS:
        plan = _asked(engine, change)
        if _works(plan, wanted):
            yield change.flag
            return
        if plan is None:
            return
        following = (c for c in engine.changes(plan) if c.name == MORE_CARDS)
        wider = next(following, None)
        if wider is None:
            return
        change = wider


def _asked(engine: Engine, change: Change) -> EnginePlan | None:
    try:
        return engine.plan(change.model, change.node, change.asked)
    except KvplanError:
        return None


def _works(plan: EnginePlan | None, wanted: int) -> bool:
    if plan is None or not plan.starts:
        return False
    return plan.capacity(plan.asked.context).sequences >= wanted
