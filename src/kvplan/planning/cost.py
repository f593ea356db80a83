"""What a plan costs: the hour of its cards over the conversations and tokens it serves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kvplan.planning.question import Question
from kvplan.planning.speed import SpeedBound


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Money in ``currency``; a cost per token is the least it can be, by the bandwidth bound."""

    currency: str
    per_gpu_hour: float
    per_hour: float
    per_sequence_hour: float | None
    per_million_output_tokens: float | None

    def to_dict(self) -> dict[str, Any]:
        """The contract's ``cost`` object."""
        return {
            "currency": self.currency,
            "per_gpu_hour": self.per_gpu_hour,
            "per_hour": self.per_hour,
            "per_sequence_hour": self.per_sequence_hour,
            "per_million_output_tokens": self.per_million_output_tokens,
        }


def cost_of(question: Question, sequences: int, speed: SpeedBound | None) -> Cost | None:
    """The cost of a plan that holds ``sequences``; None without a price."""
    if question.price is None:
        return None
    hour = question.price * question.node.gpus
    tokens_per_hour = speed.tokens_per_s_per_sequence * speed.batch * 3600 if speed else 0
    return Cost(
        currency=question.currency,
        per_gpu_hour=question.price,
        per_hour=hour,
        per_sequence_hour=hour / sequences if sequences else None,
        per_million_output_tokens=hour / tokens_per_hour * 1e6 if tokens_per_hour else None,
    )
