"""How fast a plan will be: the bound's terms at the rates that engines reach, with an error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil

from kvplan.core.measured import Calibration
from kvplan.core.step import StepCost
from kvplan.engines.base import EnginePlan
from kvplan.planning.speed.away import away_of
from kvplan.planning.speed.batching import Batching, batching_of
from kvplan.planning.speed.bound import work_of
from kvplan.planning.speed.calibration import calibrated
from kvplan.planning.speed.measured import applies, reads_of
from kvplan.planning.speed.rates import Rates
from kvplan.planning.speed.serving import Served, closed_loop, full_queue, prompt_alone_s
from kvplan.planning.speed.steps import step_cost


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The cost of every step of one rank, of ``replicas × batching.group`` alike.

    ``error`` is the relative half width of a band that holds at least 85% of measurements: a
    step of 10 ms with an error of 0.2 takes 8.3 to 12. ``calibrated`` says whether this engine was
    measured on this kind of card. ``in_process`` is the cost where no client is served over HTTP.
    Where nobody ``computes``, as the card's operations a second are not known, prompts cost their
    reading alone: a decode step is an estimate, and what has prompts in it is none.
    """

    cost: StepCost
    in_process: StepCost
    batching: Batching
    error: float
    source: str
    calibrated: bool
    replicas: int = 1
    computes: bool = True

    @property
    def ranks(self) -> int:
        """Ranks with sequences of their own."""
        return self.replicas * self.batching.group

    def decode_s(self, batch: int, context: int) -> float:
        """A decode step of ``batch`` sequences over all ranks, each of ``context`` tokens."""
        return self.cost.decode_s(-(-batch // self.ranks), context)

    def prefill_s(self, prompt: int) -> float:
        """One prompt that has a rank to itself."""
        return prompt_alone_s(self.cost, prompt, self.batching.budget)

    def closed_loop(
        self, *, prompt: int, output: int, clients: int, capacity: int, drawn: bool = False
    ) -> Served:
        """Clients that each wait for their answer, over all ranks; ``capacity`` is of all too.

        Raises nothing: a capacity of 0 is taken as one sequence a rank, for what it would be.
        """
        ranks = self.ranks
        found = closed_loop(
            self.cost,
            self.batching,
            prompt=max(1, prompt),
            output=max(1, output),
            clients=max(1.0, clients / ranks),
            capacity=max(1, capacity // ranks),
            drawn=drawn,
        )
        used = min(ranks, clients)
        return replace(
            found, tokens_per_s=found.tokens_per_s * used, batch=min(clients, found.batch * used)
        )

    def full_queue(
        self,
        *,
        prompt: int,
        output: int,
        capacity: int,
        requests: int | None = None,
        sizes: Sequence[int] = (),
    ) -> Served:
        """All requests at once, as many as fit running, without a server between.

        ``requests`` are those of a run of equal lengths; None of one without end. ``sizes`` are
        those of captured graphs that steps without prompts are filled up to.
        """
        found = full_queue(
            self.in_process,
            self.batching,
            prompt=max(1, prompt),
            output=max(1, output),
            capacity=max(1, capacity // self.ranks),
            requests=None if requests is None else ceil(requests / self.ranks),
            sizes=sizes,
        )
        return replace(
            found,
            tokens_per_s=found.tokens_per_s * self.ranks,
            batch=found.batch * self.ranks,
        )


def estimate(plan: EnginePlan, bandwidth: int | None = None) -> Estimate | None:
    """The estimate of a plan; None where its weights or its card's bandwidth are not known.

    ``bandwidth`` is the card's in bytes a second, in place of its table's. A calibration of the
    plan's engine and card stands in place of published rates.
    """
    own = applies(plan)
    if own is not None:
        return _measured(plan, own)
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
    cost, error, source = step_cost(ideal, found.rates, found.source), found.error, found.source
    away = away_of(plan, work.shape)
    if away is not None:
        here = 1 - away.share
        kept = ideal._replace(
            dense_read_s=ideal.dense_read_s * here, experts_read_s=ideal.experts_read_s * here
        )
        source = f"{source}; {away.share:.0%} of the weights from {away.said}"
        cost = step_cost(kept, found.rates, source)
        cost = replace(cost, fixed_s=cost.fixed_s + away.seconds)
        error = (1 + error) ** 2 - 1
    served = found.rates.sequence_s / ideal.stages
    return Estimate(
        cost=cost,
        in_process=replace(cost, sequence_s=max(0.0, cost.sequence_s - served)),
        batching=batching_of(plan, found.rates, int(ideal.group)),
        error=error,
        source=source,
        calibrated=found.calibrated and away is None,
        replicas=work.replicas,
        computes=ideal.dense_token_s + ideal.experts_token_s > 0,
    )


def _measured(plan: EnginePlan, own: Calibration) -> Estimate | None:
    """By a calibration, of what the plan reads."""
    reads = reads_of(plan)
    if reads is None:
        return None
    cost = own.cost(reads)
    return Estimate(
        cost=cost,
        in_process=cost,
        batching=batching_of(plan, Rates(), 1),
        error=own.error(reads),
        source=own.source,
        calibrated=True,
        replicas=plan.replicas,
    )
