"""The answer of ``advise``: options in order, the best of them, the frontier, what to relax."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from kvplan.core.units import format_seconds
from kvplan.engines.names import DEFAULT_ENGINE
from kvplan.planning.advise.confirm import Simulated
from kvplan.planning.advise.goal import TURN_TOKENS, Goal, quantile_of_sum
from kvplan.planning.advise.option import Option
from kvplan.planning.advise.outcome import Outcome
from kvplan.planning.advise.relax import Relaxed
from kvplan.planning.advise.search import Space
from kvplan.planning.answer import Answer
from kvplan.planning.cost.hosted import Hosted
from kvplan.planning.support import refusal

WORTH_SIZING: Final = 1.5  # the longest over nearly all
WIDE: Final = 0.25  # an error that is worth a sentence


@dataclass(frozen=True, slots=True)
class AdviseAnswer(Answer):
    """``options`` in order of cost, those that meet the goals first.

    ``risk`` is the share of moments with a preemption, where sizing is at a percentile.
    """

    verb: ClassVar[str] = "advise"

    goal: Goal
    space: Space
    options: tuple[Option, ...]
    frontier: tuple[Outcome, ...]
    relax: tuple[Relaxed, ...]
    hosted: Hosted | None
    simulated: tuple[Simulated, ...]
    risk: float | None
    said: tuple[str, ...]

    @property
    def best(self) -> Option | None:
        """The cheapest that meets every goal."""
        return self.options[0] if self.options and self.options[0].fits else None

    @property
    def nearest(self) -> Option | None:
        """The best, or what comes nearest to the goals."""
        return self.options[0] if self.options and self.options[0].outcome else None

    @property
    def warnings(self) -> tuple[str, ...]:  # type: ignore[override]
        """What was assumed, and what to know of the best."""
        models = (text for model in self.space.models for text in model.warnings)
        return (*self.said, *models, *self._assumed(), *self._of_best())

    def _assumed(self) -> Iterator[str]:
        goal = self.goal
        if goal.prompt is None and goal.hit_rate is None:
            yield (
                f"Conversations: a turn is taken to compute {TURN_TOKENS:,} new tokens, its "
                "history cached, and the first token is judged on a whole context that is not. "
                "Say more with --prompt and --output, or --hit-rate."
            )
        pricing = self.space.pricing
        yield from pricing.untold(self.space.devices)

    def _of_best(self) -> Iterator[str]:
        option = self.nearest
        one = option.outcome if option else None
        if one is None or one.served is None:
            return
        engine, device = one.sized.candidate.engine.name, one.sized.candidate.device
        if self.space.engine is None and engine != DEFAULT_ENGINE:
            yield f"{refusal(DEFAULT_ENGINE, device)}: planned for {engine}."
        yield from self._spread(one)
        yield from self._warm(one)
        if one.sized.plan is not None:
            yield from one.sized.plan.warnings
        if one.sized.error > WIDE:
            yield (
                f"Times of {one.sized.candidate.device.name} are estimated within a factor of "
                f"{1 + one.sized.error:.2f}: measure before you buy (kvplan measure)."
            )
        if one.sized.candidate.squeezed:
            yield "Little is left beside the pool (see the flags): nothing else may use the cards."
        rate = one.sized.rate
        whole = rate.instance_gpus if rate else None
        if rate is not None and whole is not None and one.gpus % whole and not rate.whole:
            yield (
                f"{rate.said.split(',')[0]} rents {whole} cards together: the hour is that of "
                f"{one.gpus}, of {-(-one.gpus // whole) * whole} it is "
                f"{rate.per_gpu_hour * -(-one.gpus // whole) * whole:,.2f} {rate.currency} "
                "(--whole-instances counts all)."
            )
        if one.per_hour is None:
            told = self.space.pricing.rate_is_missing
            why = "No price can be told" if told else "No price is listed for this card"
            yield f"{why}: options are in order of cards (see --price)."

    def _warm(self, one: Outcome) -> Iterator[str]:
        """Where a whole context is too slow and a turn with its history cached is not."""
        served, goal = one.served, self.goal
        load = one.sized.load
        if served is None or load is None or goal.ttft_s is None:
            return
        if served.ttft_s > goal.ttft_s >= served.warm_ttft_s and load.traffic.is_judged_cold:
            hits = 1 - load.traffic.warm_tokens / load.traffic.judged_tokens
            yield (
                f"A turn whose history is cached has its first token in "
                f"{format_seconds(served.warm_ttft_s)}: --hit-rate {hits:.0%} judges those."
            )

    def _spread(self, one: Outcome) -> Iterator[str]:
        """Where few sequences are as long as the room that each is given."""
        load = one.sized.load
        if load is None or self.goal.size_at is not None or self.goal.prompt is None:
            return
        peak = load.traffic.peak_tokens
        most = quantile_of_sum(load.traffic.prompt, load.traffic.output, 0.95)
        if peak > WORTH_SIZING * most:
            yield (
                f"Every sequence is given room for the longest, {peak:,} tokens; 95% are under "
                f"{most:,.0f}. --size-at p95 plans for those, and says how often it is too little."
            )

    def body(self) -> dict[str, Any]:
        """The contract's keys of ``advise``."""
        return {
            "goal": self.goal.to_dict(),
            "currency": self.space.pricing.currency,
            "options": [option.to_dict() for option in self.options],
            "best": 0 if self.best else None,
            "frontier": [_point(one) for one in self.frontier],
            "relax": [one.to_dict() for one in self.relax],
            "preemption_risk": self.risk,
            "hosted": self._hosted(),
            "simulated": [one.to_dict() for one in self.simulated],
        }

    def _hosted(self) -> dict[str, Any] | None:
        """The API beside the best option."""
        if self.hosted is None:
            return None
        one = self.nearest.outcome if self.nearest else None
        rate = one.served.rate_per_s * one.replicas if one and one.served else None
        cost = one.per_hour if one else None
        api = self.hosted
        even, uncached = (
            (api.break_even(cost, cached=cached) if cost is not None else None)
            for cached in (True, False)
        )
        return api.to_dict() | {
            "requests_per_s": rate,
            "per_hour": api.per_hour(rate) if rate is not None else None,
            "break_even_requests_per_s": even,
            "break_even_uncached_requests_per_s": uncached,
        }


def _point(one: Outcome) -> dict[str, Any]:
    """A point of the frontier."""
    assert one.served is not None
    candidate = one.sized.candidate
    return {
        "gpu": candidate.device.name,
        "gpus": one.gpus,
        "replicas": one.replicas,
        "layout": candidate.layout.said,
        "model": candidate.variant.model.name,
        "weights": candidate.variant.stored,
        "small_cache": candidate.small_cache,
        "cost_per_hour": one.per_hour,
        "ttft_s": one.served.ttft_s,
        "tpot_s": one.served.tpot_s,
        "meets": one.meets,
    }
