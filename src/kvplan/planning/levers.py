"""What each change buys: the same question asked again with one thing different."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from kvplan.core.errors import KvplanError
from kvplan.engines.base import Change, Engine, EnginePlan


@dataclass(frozen=True, slots=True, kw_only=True)
class Lever:
    """One change and the sequences that fit with it; ``factor`` is over those without it."""

    name: str
    change: str
    sequences: int
    factor: float | None
    note: str

    def to_dict(self) -> dict[str, Any]:
        """The contract's lever row."""
        return asdict(self)


def changes_of(engine: Engine, base: EnginePlan) -> Iterator[Change]:
    """The engine's changes, without those that the devices cannot follow."""
    for change in engine.changes(base):
        if not (base.node.device.sliced and change.node.gpus > base.node.gpus):
            yield change


def levers_of(engine: Engine, base: EnginePlan) -> list[Lever]:
    """Every lever that applies to a plan, each recomputed by the engine's own rules."""
    before = base.capacity(base.asked.context).sequences if base.starts else 0
    found = []
    for change in changes_of(engine, base):
        try:
            plan = engine.plan(change.model, change.node, change.asked)
        except KvplanError:
            continue
        after = plan.capacity(change.asked.context).sequences if plan.starts else 0
        found.append(
            Lever(
                name=change.name,
                change=change.flag,
                sequences=after,
                factor=after / before if before else None,
                note=change.note,
            )
        )
    return found
