"""``fit``: where the card's memory goes, how many conversations fit, how fast and at what cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Final

from kvplan.core.units import USD, format_bytes
from kvplan.engines.base import EnginePlan
from kvplan.engines.names import flags_of
from kvplan.planning.answer import Answer
from kvplan.planning.cost import Cost, cost_of
from kvplan.planning.cost.pricing import pricing_of
from kvplan.planning.handover import Handover, Prefill, handover, prefill_of
from kvplan.planning.joined import join
from kvplan.planning.levers import Lever, levers_of
from kvplan.planning.nearest import nearest
from kvplan.planning.question import Question, ask
from kvplan.planning.speed import NO_WORKLOAD, SpeedBound, Workload, speed_bound, workload_of
from kvplan.planning.speed.speculation import drafting_of
from kvplan.planning.tiers import TierAnswer, tiers_of
from kvplan.readers.open_model import ModelSource

# What may stop more, by the engines' own flags.
LENGTHS: Final = ("max_model_len", "context_length", "max_seq_len")
COUNTS: Final = ("max_num_seqs", "max_running_requests", "max_batch_size")


@dataclass(frozen=True, slots=True)
class FitAnswer(Answer):
    """An engine's plan, what its pool holds, and what that means."""

    verb: ClassVar[str] = "fit"

    question: Question
    plan: EnginePlan
    workload: Workload = NO_WORKLOAD
    prefill: Prefill | None = None

    @property
    def warnings(self) -> tuple[str, ...]:  # type: ignore[override]
        """What was assumed on the way."""
        apart = self.prefill.warnings if self.prefill else ()
        return self.question.warnings + apart + self.plan.warnings + self._unheard

    @property
    def _unheard(self) -> tuple[str, ...]:
        """What was asked and says nothing of this plan."""
        acceptance = self.workload.acceptance
        if acceptance is None or drafting_of(self.plan, acceptance) is not None:
            return ()
        return ("--acceptance says nothing: the engine is not started with drafts.",)

    @property
    def wanted(self) -> int:
        """The sequences that have to fit."""
        return self.question.asked.concurrency or 1

    @property
    def sequences(self) -> int:
        """The sequences of the asked length that run at once."""
        return self.plan.capacity(self.question.asked.context).sequences

    @property
    def fits(self) -> bool:
        """Whether the engine starts and holds them."""
        return self.plan.starts and self.sequences >= self.wanted

    @property
    def reason(self) -> str | None:
        """The first term that breaks the plan, and what would fit; None where it fits."""
        if self.fits:
            return None
        works = nearest(self.question.engine, self.plan, self.wanted)
        said = self._broken
        return f"{said} The nearest that fits: {', or '.join(works)}." if works else said

    @property
    def _broken(self) -> str:
        """Why it does not start, or what so many sequences lack."""
        if not self.plan.starts:
            return self.plan.reason or "It does not start."
        context = self.question.asked.context
        lacking = self.plan.shortfall(context, self.wanted)
        if lacking is not None:
            return lacking
        by_flag = self._by_flag(context)
        if by_flag is not None:
            return by_flag
        one, pool = self.plan.sequence_bytes(context), self.plan.pool.num_bytes
        return (
            f"{self.wanted:,} × {context:,} tokens need {format_bytes(one * self.wanted)} of cache "
            f"on each card, and {format_bytes(pool)} are left: {self.sequences:,} fit."
        )

    def _by_flag(self, context: int) -> str | None:
        """What an engine's own limit says of so many, or of so long ones; None where none does."""
        limit = self.plan.capacity(context).limited_by
        flag = f"--{limit.replace('_', '-')}"
        value, source = self.plan.launch.settings.get(flag, (None, ""))
        if not isinstance(value, int):
            return None
        said = f"{flag} {value:,} ({source})"
        if limit in COUNTS:
            return f"{self.wanted:,} are to run at once, and {said} lets {value:,}."
        if limit not in LENGTHS or context <= value:
            return None
        same = context * 1000 == value * 1024  # 32k, read in two ways
        two = " An engine's flag reads 32k as 32,000, --context as 32,768." if same else ""
        return f"A conversation of {context:,} tokens is longer than {said}.{two}"

    @property
    def max_context(self) -> int:
        """The longest context of ``wanted`` sequences."""
        return self.plan.longest(self.wanted) if self.plan.starts else 0

    @property
    def batch(self) -> int:
        """Sequences that speed is asked for: those named, else those that fit."""
        return self.question.asked.concurrency or self.sequences

    @property
    def speed(self) -> SpeedBound | None:
        """The bound of a decode step and the estimate; None without a batch or a bandwidth."""
        bandwidth = self.question.bandwidth_bytes_per_s
        return speed_bound(self.plan, bandwidth, self.batch, self.workload)

    @property
    def handover(self) -> Handover | None:
        """Prompts on cards of their own; None where none are named or an estimate lacks."""
        if self.prefill is None:
            return None
        return handover(self.question, self.plan, self.prefill, self.workload, self.batch)

    @property
    def cost(self) -> Cost | None:
        """What the cards cost; None where no price is given or listed."""
        return cost_of(self.plan, self.question.pricing, self.sequences, self.speed)

    @property
    def tiers(self) -> list[TierAnswer]:
        """Host memory behind the pool, and when loading from it pays."""
        return tiers_of(self.plan, self.question.host_link)

    @property
    def levers(self) -> list[Lever]:
        """What each change buys, by the same rules."""
        return levers_of(self.question.engine, self.plan)

    def body(self) -> dict[str, Any]:
        """The contract's keys of ``fit``."""
        q, plan = self.question, self.plan
        speed, cost, apart = self.speed, self.cost, self.handover
        capacity = plan.capacity(q.asked.context)
        outside = {flag: {"value": v, "source": s} for flag, (v, s) in q.sources.items()}
        return {
            "fits": self.fits,
            "reason": self.reason,
            "model": q.model.name,
            "device": {
                "name": q.node.device.name,
                "count": q.node.gpus,
                "memory_bytes": q.node.memory_bytes,
                "bandwidth_bytes_per_s": q.bandwidth_bytes_per_s,
            },
            "engine": {"name": plan.engine, "version": plan.version},
            "launch": plan.launch.to_dict() | outside,
            "ledger": [term.to_dict() for term in plan.ledger],
            "pool": plan.pool.to_dict(),
            "capacity": {
                "context_tokens": q.asked.context,
                "sequences": capacity.sequences,
                "limited_by": capacity.limited_by,
            },
            "max_context": {"sequences": self.wanted, "tokens": self.max_context},
            "speed": speed.to_dict() if speed else None,
            "disaggregated": apart.to_dict() if apart else None,
            "cost": cost.to_dict() if cost else None,
            "tiers": [tier.to_dict() for tier in self.tiers],
            "levers": [lever.to_dict() for lever in self.levers],
            "prints": list(plan.prints),
            "command": plan.command,
        }


def fit(
    model: ModelSource | None = None,
    *,
    from_: str | None = None,
    gpu: str | None = None,
    gpus: int | None = None,
    engine: str | None = None,
    engine_version: str | None = None,
    context: int | str | None = None,
    concurrency: int | None = None,
    prompt: int | str | None = None,
    output: int | str | None = None,
    acceptance: float | None = None,
    prefill_gpu: str | None = None,
    prefill_gpus: int | None = None,
    link: int | str | None = None,
    weights_bytes: int | str | None = None,
    gpu_memory: int | str | None = None,
    free_memory: int | str | None = None,
    bandwidth: int | str | None = None,
    host_bandwidth: int | str | None = None,
    kv_pool: int | str | None = None,
    shared_prefix: int | str | None = None,
    price: float | None = None,
    currency: str = USD,
    exchange_rate: float | None = None,
    price_kind: str = "on-demand",
    discount: float | str | None = None,
    provider: str | None = None,
    capital: float | None = None,
    life_years: float | None = None,
    power_price: float | None = None,
    pue: float | None = None,
    power_watts: float | None = None,
    set: Mapping[str, Any] | None = None,
    encoder_tokens: int | str | None = None,
    assume: str = "",
    offline: bool = False,
    calibration: str | Path | None = None,
    **flags: Any,
) -> FitAnswer:
    """How many conversations of a model a card holds, how fast it decodes them, what they cost.

    Args:
        model: a name, a path, ``-`` or a parsed config; the command line's where ``from_`` has one.
        from_: an engine's own command line (``vllm serve …``, ``docker run …``), or the path of a
            compose file, a Kubernetes manifest or a script that has it. What is given beside it
            replaces its own.
        gpu: a device by any name; or none, with ``gpu_memory``.
        gpus: cards, as tensor parallelism; default: those of the command line, else 1.
        engine: default: the command line's, else vllm; ``none`` is plain arithmetic.
        engine_version: the engine's release; default: the newest that is modelled.
        context: tokens of each conversation; default: the smaller of 32k and the model's maximum.
        concurrency: conversations that have to fit, and the batch that speed is asked for.
        prompt: tokens of each request's prompt; with ``output`` the estimate is for clients that
            each send a request, wait for its answer and send the next.
        output: tokens of each answer.
        acceptance: the probability that a drafted token is accepted, where the flags draft.
        prefill_gpu: cards of another kind, or more of the same, that compute the prompts; ``gpu``
            decodes then, and the cache of each prompt is moved between them.
        prefill_gpus: how many of them work on a prompt; default: 1.
        link: of each card, from those to these, as ``50GB/s``.
        weights_bytes: what the weights take, in place of what the source says.
        gpu_memory: one card's memory, in place of what its driver reports.
        free_memory: what one card has free at the start, where other processes hold some of it.
        bandwidth: one card's memory bandwidth, as ``2000GB/s``.
        host_bandwidth: of the link from one card to its host's memory, one way, as ``25GB/s``.
        kv_pool: one card's pool as a log states it, instead of predicting it.
        shared_prefix: tokens that all conversations share and that are kept once.
        price: of one card for one hour; default: the cheapest list price of the device.
        currency: of every price.
        exchange_rate: of the currency for a dollar, for list prices.
        price_kind: ``on-demand``, ``spot`` or ``reserved``.
        discount: what a reservation takes off the list, as ``40%``.
        provider: whose list prices.
        capital: of one card that is owned, with its part of the host.
        life_years: of a card that is owned; default: 4.
        power_price: of one kWh.
        pue: power of the site over that of the cards; default: 1.3.
        power_watts: of one card; default: its board power.
        set: config keys to replace.
        encoder_tokens: the encoder's length, for models with cross-attention.
        assume: ``full`` sizes a config of an unknown type as full attention.
        offline: never ask the hub.
        calibration: a folder of ``measure``: the estimate is by what was measured there.
        flags: the engine's own flags with underscores, as ``allowance="8GiB"``.

    Raises:
        BadQuestion: a value that cannot be read or that no card has.
        SourceUnreachable: a file or the hub does not answer.
    """
    asked = join(
        from_,
        model=model,
        engine=engine,
        engine_version=engine_version,
        gpus=gpus,
        set=set,
        flags=flags_of(flags),
    )
    workload = workload_of(prompt, output, acceptance)
    prefill = prefill_of(prefill_gpu, prefill_gpus, link, workload)
    question = ask(
        asked.model,
        gpu=gpu,
        gpus=asked.gpus,
        engine=asked.engine,
        engine_version=asked.engine_version,
        context=workload.context if context is None else context,
        concurrency=concurrency,
        weights_bytes=weights_bytes,
        gpu_memory=gpu_memory,
        free_memory=free_memory,
        bandwidth=bandwidth,
        host_bandwidth=host_bandwidth,
        kv_pool=kv_pool,
        shared_prefix=shared_prefix,
        calibration=calibration,
        pricing=pricing_of(
            price=price,
            currency=currency,
            exchange_rate=exchange_rate,
            price_kind=price_kind,
            discount=discount,
            provider=provider,
            capital=capital,
            life_years=life_years,
            power_price=power_price,
            pue=pue,
            power_watts=power_watts,
        ),
        set=asked.set,
        encoder_tokens=encoder_tokens,
        assume=assume,
        offline=offline,
        flags=asked.flags,
    )
    question = replace(question, warnings=asked.warnings + question.warnings)
    return answer(question, workload, prefill)


def answer(
    question: Question, workload: Workload = NO_WORKLOAD, prefill: Prefill | None = None
) -> FitAnswer:
    """The answer to a question that is already read."""
    plan = question.engine.plan(question.model, question.node, question.asked)
    return FitAnswer(question, plan, workload, prefill)
