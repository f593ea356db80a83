"""What a plan costs: the hour of its cards over the conversations and tokens it serves.

    a million output tokens   ≥  cards × hour ÷ tokens an hour of the bandwidth bound
    a million input tokens    ≥  cards × hour ÷ tokens an hour that the dense peak computes

Each is of a plan that does nothing else; a request costs its input and its output together. Beside
both bounds stand the same at the estimated speed; where a workload is asked, the output's counts
the prompts between its steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from kvplan.planning.tiers import peak_of, prefill_flops

if TYPE_CHECKING:
    from kvplan.engines.base import EnginePlan
    from kvplan.planning.cost.pricing import Pricing, Rate
    from kvplan.planning.speed import SpeedBound

HOUR_S: Final = 3600.0
MILLION: Final = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Money in the rate's currency; costs of tokens are the least they can be."""

    rate: Rate
    gpus: int
    sequences: int
    output_tokens_per_s: float | None = None
    input_tokens_per_s: float | None = None
    estimated_output_tokens_per_s: float | None = None
    estimated_input_tokens_per_s: float | None = None

    @property
    def currency(self) -> str:
        """Of every figure."""
        return self.rate.currency

    @property
    def per_gpu_hour(self) -> float:
        """One card."""
        return self.rate.per_gpu_hour

    @property
    def per_hour(self) -> float:
        """All cards."""
        return self.rate.per_hour(self.gpus)

    @property
    def per_sequence_hour(self) -> float | None:
        """A conversation where all that fit run; None where none fits."""
        return self.per_hour / self.sequences if self.sequences else None

    @property
    def per_million_output_tokens(self) -> float | None:
        """Of cards that decode all the time."""
        return self._per_million(self.output_tokens_per_s)

    @property
    def per_million_input_tokens(self) -> float | None:
        """Of cards that compute prompts all the time."""
        return self._per_million(self.input_tokens_per_s)

    @property
    def estimated_per_million_output_tokens(self) -> float | None:
        """At the estimated speed."""
        return self._per_million(self.estimated_output_tokens_per_s)

    @property
    def estimated_per_million_input_tokens(self) -> float | None:
        """At the estimated speed."""
        return self._per_million(self.estimated_input_tokens_per_s)

    def _per_million(self, tokens_per_s: float | None) -> float | None:
        return per_million(self.per_hour, tokens_per_s)

    def to_dict(self) -> dict[str, Any]:
        """The contract's ``cost`` object."""
        return {
            "currency": self.currency,
            "per_gpu_hour": self.per_gpu_hour,
            "per_hour": self.per_hour,
            "per_sequence_hour": self.per_sequence_hour,
            "per_million_output_tokens": self.per_million_output_tokens,
            "per_million_input_tokens": self.per_million_input_tokens,
            "estimated_per_million_output_tokens": self.estimated_per_million_output_tokens,
            "estimated_per_million_input_tokens": self.estimated_per_million_input_tokens,
        } | self.rate.to_dict()


def per_million(per_hour: float, tokens_per_s: float | None) -> float | None:
    """What a million tokens cost at a rate; None where nothing is served."""
    if not tokens_per_s:
        return None
    return per_hour / (tokens_per_s * HOUR_S) * MILLION


def cost_of(
    plan: EnginePlan, pricing: Pricing, sequences: int, speed: SpeedBound | None
) -> Cost | None:
    """The cost of a plan that holds ``sequences``; None where no price is given or listed."""
    group = max(1, plan.node.gpus // max(1, plan.replicas))
    rate = pricing.rate(plan.node.device, group)
    if rate is None:
        return None
    found = speed.estimate if speed else None
    together = found.served.tokens_per_s if found and found.served else None
    if found and together is None:
        together = found.tokens_per_s_per_sequence * found.batch
    return Cost(
        rate=rate,
        gpus=plan.node.gpus,
        sequences=sequences,
        output_tokens_per_s=speed.tokens_per_s_per_sequence * speed.batch if speed else None,
        input_tokens_per_s=_input_rate(plan),
        estimated_output_tokens_per_s=together,
        estimated_input_tokens_per_s=found.prompt / found.prefill_s * found.estimate.ranks
        if found and found.prefill_s
        else None,
    )


def _input_rate(plan: EnginePlan) -> float | None:
    """Tokens a second of prompts of the asked length, at the dense peak of all cards."""
    peak = peak_of(plan.model, plan.node.device, plan.node.gpus)
    tokens = plan.asked.context
    flops = prefill_flops(plan.model, tokens) if peak else 0
    return tokens * peak.flops_per_s / flops if peak and flops else None
