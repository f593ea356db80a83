"""One way to serve: a card, a checkpoint, a layout, a cache format; planned once by its engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from kvplan.core.device import Device
from kvplan.core.errors import KvplanError
from kvplan.core.measured import Calibration
from kvplan.engines.base import Asked, Engine, EnginePlan, Node
from kvplan.engines.names import LAYERED
from kvplan.planning.advise.goal import Goal, Traffic
from kvplan.planning.advise.load import Load, Replica
from kvplan.planning.advise.serving import CACHE, SQUEEZED, Layout, flags_of
from kvplan.planning.advise.variants import Variant
from kvplan.planning.cost.pricing import Rate
from kvplan.planning.speed import estimate
from kvplan.planning.support import needs_half

MOST_SLOTS: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """What is started once for each replica. ``small_cache`` is a cache of 8 bits, ``squeezed`` a
    start that leaves less of the card beside the pool.
    """

    device: Device
    engine: Engine
    version: str | None
    variant: Variant
    layout: Layout
    small_cache: bool
    given: Mapping[str, Any]
    calibration: Calibration | None = None
    squeezed: bool = False

    def flags(self, context: int, slots: int | None = None) -> dict[str, Any]:
        """Its flags by the engine's table; what was given goes before what is chosen."""
        chosen = flags_of(self.engine.name, self.layout, context, slots) | self.variant.flags
        if self.small_cache:
            chosen |= CACHE.get(self.engine.name, {})
        if self.squeezed:
            chosen |= SQUEEZED.get(self.engine.name, {})
        if needs_half(self.device) and self.variant.model.traits.dtype == "bfloat16":
            chosen |= {"--dtype": "half"} if self.engine.flags.find("--dtype") else {}
        return {**self.engine.flags.parse(chosen), **self.given}

    def plan(self, context: int, shared_prefix: int = 0, slots: int | None = None) -> EnginePlan:
        """Its engine's plan of one replica.

        Raises:
            BadQuestion: what the engine refuses.
        """
        asked = Asked(
            context=context,
            version=self.version,
            flags=self.flags(context, slots),
            shared_prefix=min(shared_prefix, context - 1),
            calibration=self.calibration,
        )
        node = Node(
            device=self.device,
            gpus=self.layout.cards,
            memory_bytes=self.device.memory_bytes or 0,
        )
        return self.engine.plan(self.variant.model, node, asked)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sized:
    """A candidate with its plan: the sequences that fit in one replica, and how fast it steps.

    ``load`` is None where it does not start or its speed is not known; ``why`` says which.
    """

    candidate: Candidate
    plan: EnginePlan | None
    sequences: int
    load: Load | None
    error: float
    rate: Rate | None
    why: str | None = None

    @property
    def cards(self) -> int:
        """Of one replica."""
        return self.candidate.layout.cards


def size(candidate: Candidate, goal: Goal, traffic: Traffic, rate: Rate | None) -> Sized:
    """The candidate planned and measured against the traffic's length."""
    try:
        plan, sequences = _planned(candidate, goal, traffic)
    except KvplanError as error:
        return _failed(candidate, rate, None, error.message)
    if plan is None or not plan.starts or sequences < 1:
        return _failed(candidate, rate, plan, _why(plan, traffic))
    pace = estimate(plan)
    if pace is None:
        return _failed(candidate, rate, plan, "its speed is not known")
    if not pace.computes:
        why = "what it computes a second is in no source"
        return replace(_failed(candidate, rate, plan, why), sequences=sequences)
    replica = Replica(
        cost=pace.cost,
        batching=pace.batching,
        stages=candidate.layout.pp,
        most=sequences,
    )
    return Sized(
        candidate=candidate,
        plan=plan,
        sequences=sequences,
        load=Load(replica, traffic, goal),
        error=pace.error,
        rate=rate,
    )


def _planned(candidate: Candidate, goal: Goal, traffic: Traffic) -> tuple[EnginePlan | None, int]:
    """The plan of one replica and the sequences of the sized length that it holds."""
    sized = traffic.sized_tokens
    if candidate.engine.name in LAYERED:
        return _slots(candidate, traffic, goal)
    plan = candidate.plan(traffic.peak_tokens, goal.shared_prefix)
    if sized != traffic.peak_tokens:
        plan = replace(plan, asked=replace(plan.asked, context=sized))
    return plan, plan.capacity(sized).sequences if plan.starts else 0


def _slots(candidate: Candidate, traffic: Traffic, goal: Goal) -> tuple[EnginePlan | None, int]:
    """The most slots of the sized length that llama.cpp starts with, no more than are wanted."""
    length = traffic.sized_tokens
    low, high = 0, min(MOST_SLOTS, goal.users or MOST_SLOTS)
    found = first = None
    while low < high:
        middle = (low + high + 1) // 2 if found or low else high
        plan = candidate.plan(length, slots=middle)
        first = first or plan
        if plan.starts and plan.capacity(length).sequences >= middle:
            low, found = middle, plan
        else:
            high = middle - 1
            if high == 0:
                first = plan
    return found or first, low


def _why(plan: EnginePlan | None, traffic: Traffic) -> str:
    if plan is None or not plan.starts:
        return (plan.reason if plan else None) or "it does not start"
    return f"not one sequence of {traffic.sized_tokens:,} tokens fits"


def _failed(candidate: Candidate, rate: Rate | None, plan: EnginePlan | None, why: str) -> Sized:
    return Sized(
        candidate=candidate,
        plan=plan,
        sequences=0,
        load=None,
        error=0.0,
        rate=rate,
        why=why,
    )
