"""``fit``: where the card's memory goes, how many conversations fit, how fast and at what cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from kvplan.core.errors import BadValue
from kvplan.core.ledger import Ledger
from kvplan.core.sharding import rank_curve
from kvplan.core.units import format_bytes
from kvplan.engines.plain import plain_ledger
from kvplan.planning.answer import Answer
from kvplan.planning.capacity import Demand, longest_context
from kvplan.planning.cost import Cost, cost_of
from kvplan.planning.question import Question, ask
from kvplan.planning.speed import SpeedBound, speed_bound
from kvplan.readers.open_model import ModelSource

# The engines that are modelled, and how each counts.
ENGINES = {"none": "plain arithmetic: memory − weights − allowance"}


@dataclass(frozen=True, slots=True)
class FitAnswer(Answer):
    """The ledger of one rank, what its pool holds, and what that means."""

    verb: ClassVar[str] = "fit"

    question: Question
    ledger: Ledger
    demand: Demand
    sequences: int

    @property
    def warnings(self) -> tuple[str, ...]:  # type: ignore[override]
        """What was assumed on the way."""
        return self.question.warnings

    @property
    def wanted(self) -> int:
        """The sequences that have to fit."""
        return self.question.concurrency or 1

    @property
    def fits(self) -> bool:
        """Whether they do."""
        return self.sequences >= self.wanted

    @property
    def reason(self) -> str | None:
        """The first term that breaks the plan, with its arithmetic; None where it fits."""
        if self.fits:
            return None
        q, pool = self.question, self.ledger.pool_bytes
        weights = self.ledger.terms[0].num_bytes
        if weights > q.memory_bytes:
            return (
                f"The weights take {format_bytes(weights)} of a card's "
                f"{format_bytes(q.memory_bytes)}."
            )
        if pool <= 0:
            return (
                f"Weights and allowance take {format_bytes(weights + q.allowance_bytes)} of a "
                f"card's {format_bytes(q.memory_bytes)}: nothing is left for the cache."
            )
        needed = self.demand.resident_bytes(self.wanted)
        return (
            f"{self.wanted:,} × {q.context:,} tokens need {format_bytes(needed)} of cache on each "
            f"card, and {format_bytes(pool)} are left: {self.sequences:,} fit."
        )

    @property
    def max_context(self) -> int:
        """The longest context of ``wanted`` sequences."""
        limit = self.question.model.max_context_tokens
        return longest_context(self.demand.curve, self.ledger.pool_bytes, self.wanted, limit)

    @property
    def batch(self) -> int:
        """Sequences that speed is asked for: those named, else those that fit."""
        return self.question.concurrency or self.sequences

    @property
    def speed(self) -> SpeedBound | None:
        """The bandwidth bound of a decode step; None without a batch or a bandwidth."""
        return speed_bound(self.question, self.ledger, self.demand, self.batch)

    @property
    def cost(self) -> Cost | None:
        """What the cards cost; None without a price."""
        return cost_of(self.question, self.sequences, self.speed)

    def body(self) -> dict[str, Any]:
        """The contract's keys of ``fit``."""
        from kvplan.planning.levers import levers

        q, speed, cost = self.question, self.speed, self.cost
        return {
            "fits": self.fits,
            "reason": self.reason,
            "model": q.model.name,
            "device": {
                "name": q.device.name,
                "count": q.gpus,
                "memory_bytes": q.memory_bytes,
                "bandwidth_bytes_per_s": q.bandwidth_bytes_per_s,
            },
            "engine": {"name": "none", "version": None},
            "launch": {flag: {"value": v, "source": s} for flag, (v, s) in q.given.items()},
            "ledger": [term.to_dict() for term in self.ledger],
            "pool": self._pool(),
            "capacity": {
                "context_tokens": q.context,
                "sequences": self.sequences,
                "limited_by": "pool" if self.ledger.pool_bytes > 0 else "weights",
            },
            "max_context": {"sequences": self.wanted, "tokens": self.max_context},
            "speed": speed.to_dict() if speed else None,
            "cost": cost.to_dict() if cost else None,
            "levers": [lever.to_dict() for lever in levers(self)],
            "command": "",
        }

    def _pool(self) -> dict[str, Any]:
        """The pool without an engine: bytes, and the tokens of one sequence that fill it."""
        slope = self.demand.curve.per_token
        pool = max(0, self.ledger.pool_bytes)
        return {
            "bytes": pool,
            "block_size": None,
            "num_blocks": None,
            "bytes_per_block": None,
            "kv_tokens": max(0, pool - self.demand.curve.fixed_bytes) // slope if slope else None,
            "max_concurrency": None,
            "max_model_len": self.question.model.max_context_tokens,
            "groups": [],
        }


def fit(
    model: ModelSource,
    *,
    gpu: str | None = None,
    gpus: int = 1,
    engine: str = "none",
    context: int | str | None = None,
    concurrency: int | None = None,
    kv_dtype: str = "bf16",
    weights_bytes: int | str | None = None,
    gpu_memory: int | str | None = None,
    bandwidth: int | str | None = None,
    allowance: int | str | None = None,
    shared_prefix: int | str | None = None,
    price: float | None = None,
    currency: str = "USD",
    set: Mapping[str, Any] | None = None,
    encoder_tokens: int | str | None = None,
    assume: str = "",
    offline: bool = False,
) -> FitAnswer:
    """How many conversations of a model a card holds, how fast it decodes them, what they cost.

    Args:
        model: a name, a path, ``-`` or a parsed config.
        gpu: a device by any name; or none, with ``gpu_memory``.
        gpus: cards, as tensor parallelism.
        engine: ``none`` is plain arithmetic: memory − weights − allowance.
        context: tokens of each conversation; default: the smaller of 32k and the model's maximum.
        concurrency: conversations that have to fit, and the batch that speed is asked for.
        kv_dtype: the cache's storage format.
        weights_bytes: what the weights take, in place of what the source says.
        gpu_memory: one card's memory, in place of what its driver reports.
        bandwidth: one card's memory bandwidth, as ``2000GB/s``.
        allowance: bytes of a card for all that is neither weights nor cache.
        shared_prefix: tokens that all conversations share and that are kept once.
        price: of one card for one hour.
        currency: of the price.
        set: config keys to replace.
        encoder_tokens: the encoder's length, for models with cross-attention.
        assume: ``full`` sizes a config of an unknown type as full attention.
        offline: never ask the hub.

    Raises:
        BadQuestion: a value that cannot be read or that no card has.
        SourceUnreachable: a file or the hub does not answer.
    """
    if engine not in ENGINES:
        raise BadValue(
            f"The engine {engine!r} is not modelled in this version.",
            f"Known: {', '.join(ENGINES)} (plain arithmetic).",
        )
    question = ask(
        model,
        gpu=gpu,
        gpus=gpus,
        context=context,
        concurrency=concurrency,
        kv_dtype=kv_dtype,
        weights_bytes=weights_bytes,
        gpu_memory=gpu_memory,
        bandwidth=bandwidth,
        allowance=allowance,
        shared_prefix=shared_prefix,
        price=price,
        currency=currency,
        set=set,
        encoder_tokens=encoder_tokens,
        assume=assume,
        offline=offline,
    )
    return answer(question)


def answer(question: Question) -> FitAnswer:
    """The answer to a question that is already read."""
    ledger = plain_ledger(
        memory_bytes=question.memory_bytes,
        weights_bytes=question.weights_bytes,
        weights_source=question.weights_source,
        allowance_bytes=question.allowance_bytes,
        allowance_source=question.given["--allowance"][1],
        ranks=question.gpus,
    )
    demand = Demand(
        curve=rank_curve(question.model, question.gpus, question.fmt),
        context=question.context,
        shared_prefix=question.shared_prefix,
    )
    return FitAnswer(question, ledger, demand, demand.sequences(ledger.pool_bytes))
