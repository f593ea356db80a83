"""How fast a plan will be: the bound's terms at the rates that engines reach, with an error."""

from __future__ import annotations

from dataclasses import dataclass

from kvplan.core.step import StepCost
from kvplan.engines.base import EnginePlan
from kvplan.planning.speed.bound import work_of
from kvplan.planning.speed.calibration import calibrated
from kvplan.planning.speed.steps import step_cost


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The cost of every step of one replica, of ``replicas`` alike.

    ``error`` is the relative half width of a band that holds at least 85% of measurements: a
    step of 10 ms with an error of 0.2 takes 8.3 to 12. ``calibrated`` says whether this engine was
    measured on this kind of card.
    """

    cost: StepCost
    error: float
    source: str
    calibrated: bool
    replicas: int = 1


def estimate(plan: EnginePlan, bandwidth: int | None = None) -> Estimate | None:
    """The estimate of a plan; None where its weights or its card's bandwidth are not known.

    ``bandwidth`` is the card's in bytes a second, in place of its table's.
    """
    work = work_of(plan, bandwidth)
    if work is None:
        return None
    ideal = work.ideal
    found = calibrated(
        plan.engine,
        plan.version,
        work.card.name,
        ideal.dense_kind,
        ideal.experts_kind,
        ideal.mixed > 0,
    )
    return Estimate(
        cost=step_cost(ideal, found.rates, found.source),
        error=found.error,
        source=found.source,
        calibrated=found.calibrated,
        replicas=work.replicas,
    )
