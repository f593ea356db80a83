"""The engine's plan for the model on the card: its block, its pool, and the time of a prompt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kvplan.core.errors import BadValue
from kvplan.planning.fit import FitAnswer, fit

HYBRID = (
    "The model keeps windows or states beside full attention: what they add to a hit's conditions "
    "kvplan simulate follows, and here is left out."
)


@dataclass(frozen=True, slots=True)
class Planned:
    """What of a plan matters to prompts."""

    answer: FitAnswer

    @property
    def block_size(self) -> int | None:
        """Tokens of a block; vLLM makes them longer for hybrid models."""
        return self.answer.plan.pool.block_size

    @property
    def num_blocks(self) -> int | None:
        """Blocks of the pool, None where the engine has none or does not start."""
        plan = self.answer.plan
        return plan.pool.num_blocks if plan.starts else None

    @property
    def notes(self) -> tuple[str, ...]:
        """What the plan does not carry over."""
        kinds = {group.kind for group in self.answer.plan.pool.groups}
        return (HYBRID,) if len(kinds) > 1 else ()


def planned(engine: str, model: Any, gpu: str | None, **asked: Any) -> Planned | None:
    """The plan, where a model and a card are named; of no engine as of vLLM.

    Raises:
        BadQuestion: a model or card that is not known, or one without the other where only both
            say anything.
    """
    if model is None and gpu is not None:
        raise BadValue("--gpu says how long prompts take of a model.", "Pass --model too.")
    if gpu is None and asked.get("price") is not None:
        raise BadValue("--price is of a card's time.", "Pass --model and --gpu too.")
    if model is None or gpu is None:
        return None
    return Planned(fit(model, engine="vllm" if engine == "none" else engine, gpu=gpu, **asked))
