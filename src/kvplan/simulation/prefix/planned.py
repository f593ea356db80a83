"""The engine's plan for the model on the card: its block, its pool, and the time of a prompt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kvplan.engines.base import EnginePlan
from kvplan.planning.fit import fit

HYBRID = (
    "The model keeps windows or states beside full attention: what they add to a hit's conditions "
    "kvplan simulate follows, and here is left out."
)


@dataclass(frozen=True, slots=True)
class Planned:
    """What of a plan matters to prompts."""

    plan: EnginePlan

    @property
    def block_size(self) -> int | None:
        """Tokens of a block; vLLM makes them longer for hybrid models."""
        return self.plan.pool.block_size

    @property
    def num_blocks(self) -> int | None:
        """Blocks of the pool, None where the engine has none or does not start."""
        return self.plan.pool.num_blocks if self.plan.starts else None

    @property
    def notes(self) -> tuple[str, ...]:
        """What the plan does not carry over."""
        kinds = {group.kind for group in self.plan.pool.groups}
        return (HYBRID,) if len(kinds) > 1 else ()


def planned(
    engine: str, *, model: Any, gpu: str | None, gpus: int | None, offline: bool
) -> Planned | None:
    """The plan, where a model and a card are named; of no engine as of vLLM.

    Raises:
        BadQuestion: a model or card that is not known.
    """
    if model is None or gpu is None:
        return None
    of = "vllm" if engine == "none" else engine
    return Planned(fit(model, engine=of, gpu=gpu, gpus=gpus, offline=offline).plan)
