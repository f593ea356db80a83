"""An outcome as people and programs see it: what to rent, how to start it, what it does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kvplan.engines.base import EnginePlan
from kvplan.planning.advise.goal import Goal
from kvplan.planning.advise.outcome import Outcome
from kvplan.planning.advise.search import Refused
from kvplan.planning.cost.of_plan import per_million


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One way to serve on a card, or a card on which there is none. ``why_not`` is None of the best
    alone.
    """

    goal: Goal
    outcome: Outcome | None
    refused: Refused | None = None
    why_not: str | None = None

    @property
    def fits(self) -> bool:
        """Whether it starts and meets every goal."""
        return self.outcome is not None and self.outcome.meets

    @property
    def plan(self) -> EnginePlan | None:
        """Its engine's plan of one replica."""
        return self.outcome.sized.plan if self.outcome else None

    @property
    def gpu(self) -> str:
        """The card."""
        if self.outcome is None:
            assert self.refused is not None
            return self.refused.device.name
        return self.outcome.sized.candidate.device.name

    @property
    def model(self) -> str:
        """The checkpoint."""
        if self.outcome is None:
            assert self.refused is not None
            return self.refused.model.name
        return self.outcome.sized.candidate.variant.model.name

    @property
    def per_user_hour(self) -> float | None:
        """Of each user; with a rate of each request in flight."""
        if self.outcome is None or self.outcome.per_hour is None:
            return None
        served = self.outcome.served
        users = self.goal.users or (served.running * self.outcome.replicas if served else 0)
        return self.outcome.per_hour / users if users else None

    @property
    def output_tokens_per_s(self) -> float | None:
        """Of all replicas at this traffic."""
        one = self.outcome
        if one is None or one.served is None or one.sized.load is None:
            return None
        return one.served.rate_per_s * one.replicas * one.sized.load.traffic.output_tokens

    def to_dict(self) -> dict[str, Any]:
        """A row of the JSON's ``options``."""
        return self._what() | self._how_well() | self._money()

    def _what(self) -> dict[str, Any]:
        one, plan = self.outcome, self.plan
        if one is None:
            return {
                "gpu": self.gpu, "gpus": 0, "replicas": 0, "engine": None, "version": None,
                "model": self.model, "weights": None, "cache": None, "layout": None, "launch": {},
                "command": None,
            }  # fmt: skip
        candidate = one.sized.candidate
        layout = candidate.layout
        return {
            "gpu": self.gpu,
            "gpus": one.gpus,
            "replicas": one.replicas,
            "engine": candidate.engine.name,
            "version": plan.version if plan else None,
            "model": self.model,
            "weights": candidate.variant.stored,
            "cache": cache_of(plan) if plan else None,
            "layout": {
                "tp": layout.tp,
                "pp": layout.pp,
                "dp": layout.dp,
                "ep": layout.experts,
            },
            "launch": plan.launch.to_dict() if plan else {},
            "command": plan.command if plan and plan.starts else None,
        }

    def _how_well(self) -> dict[str, Any]:
        one = self.outcome
        served = one.served if one else None
        return {
            "sequences": one.sequences if one else 0,
            "needed_sequences": served.held * one.replicas if one and served else None,
            "running": served.running * one.replicas if one and served else None,
            "requests_per_s": served.rate_per_s * one.replicas if one and served else None,
            "ttft_s": served.ttft_s if served else None,
            "warm_ttft_s": served.warm_ttft_s if served else None,
            "tpot_s": served.tpot_s if served else None,
            "error": one.sized.error if one and served else None,
            "output_tokens_per_s": self.output_tokens_per_s,
            "fits": self.fits,
            "why_not": self.why_not,
            "misses": [{"goal": m.goal, "said": m.said} for m in (one.misses if one else ())],
        }

    def _money(self) -> dict[str, Any]:
        one = self.outcome
        cost, rate = (one.per_hour, one.sized.rate) if one else (None, None)
        tokens = self.output_tokens_per_s
        return {
            "cost_per_hour": cost,
            "cost_per_user_hour": self.per_user_hour,
            "cost_per_million_output_tokens": per_million(cost, tokens) if cost else None,
            "price": {"per_gpu_hour": rate.per_gpu_hour, "currency": rate.currency} | rate.to_dict()
            if rate
            else None,
        }


def cache_of(plan: EnginePlan) -> str:
    """The cache's format by its flag; ``auto`` is the model's own."""
    for flag in ("--kv-cache-dtype", "--cache-type-k"):
        if flag in plan.launch:
            value = plan.launch[flag]
            return str(getattr(value, "name", value))
    return "auto"
