"""``advise``: what to rent for a model and its users, how to start it, and why not otherwise."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from kvplan.core.device import Device
from kvplan.core.errors import BadValue
from kvplan.core.model import Model
from kvplan.core.units import USD
from kvplan.engines.names import flags_of
from kvplan.engines.registry import engine_of
from kvplan.planning.advise.answer import AdviseAnswer
from kvplan.planning.advise.confirm import Progress, Simulated, confirm
from kvplan.planning.advise.frontier import frontier
from kvplan.planning.advise.goal import Goal, read_goal
from kvplan.planning.advise.option import Option
from kvplan.planning.advise.outcome import SIMULATED, Miss, Outcome, least
from kvplan.planning.advise.relax import relaxed
from kvplan.planning.advise.risk import preemption_risk
from kvplan.planning.advise.search import Refused, Space, sized
from kvplan.planning.advise.traced import of_trace
from kvplan.planning.cost.hosted import Hosted, Request, hosted
from kvplan.planning.cost.pricing import Pricing, pricing_of
from kvplan.planning.question import device_named
from kvplan.planning.speed.measured import read_calibration
from kvplan.readers.devices import devices
from kvplan.readers.open_model import ModelSource, open_model
from kvplan.simulation.lengths import Distribution

MOST_MODELS = 16
MOST_NAMED = 64


def advise(
    model: ModelSource | Sequence[ModelSource],
    *,
    users: int | str | None = None,
    rate: float | str | None = None,
    think: float | str | None = None,
    trace: Any = None,
    context: int | str | None = None,
    prompt: str | float | Distribution | None = None,
    output: str | float | Distribution | None = None,
    shared_prefix: int | str | None = None,
    hit_rate: float | str | None = None,
    ttft: float | str | None = None,
    tpot: float | str | None = None,
    percentile: float | str | None = None,
    budget: float | str | None = None,
    gpu: str | Sequence[str] | None = None,
    gpu_memory: int | str | None = None,
    max_gpus: int | str | None = None,
    size_at: float | str | None = None,
    sure: bool = False,
    engine: str | None = None,
    engine_version: str | None = None,
    allow_quantise: bool = False,
    simulate: bool = False,
    api: str | None = None,
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
    whole_instances: bool = False,
    set: Mapping[str, Any] | None = None,
    offline: bool = False,
    calibration: str | Path | None = None,
    progress: Progress | None = None,
    **flags: Any,
) -> AdviseAnswer:
    """The cheapest way to serve a model to its users, and why the others lose.

    Args:
        model: one model, or several to choose from.
        users: requests in flight at once; default: 1.
        rate: requests a second instead, as ``2/s`` or ``500/h``.
        think: the pause of each user before the next request.
        trace: a file of requests: the lengths of its prompts and answers, and its rate where
            neither users nor a rate is given.
        context: tokens of a conversation at its longest; default: what prompt and output come to,
            else the smaller of 32k and the model's maximum.
        prompt: lengths of prompts: a number or a distribution.
        output: lengths of answers; default: 512.
        shared_prefix: tokens that all prompts begin with and that are kept once.
        hit_rate: the share of the rest of a prompt that is found in the cache.
        ttft: time to first token that must hold, as ``2s``.
        tpot: time per output token that must hold, as ``50ms``.
        percentile: of requests for which both must hold; default: p95.
        budget: money for a time, as ``10/h`` or ``5000/month``.
        gpu: cards that are allowed; default: every card whose figures are complete.
        gpu_memory: of the one card that is named, in place of what its driver reports.
        max_gpus: cards of the whole deployment; default: 32.
        size_at: a percentile of the lengths that sequences are given room for; default: the peak.
        sure: times have to hold at the upper end of the estimate's band.
        engine: default: vllm, and llama.cpp on named cards that it does not run on.
        engine_version: its release; default: the newest that is modelled.
        allow_quantise: weights may be quantised where no such checkpoint is published.
        simulate: what meets the goals by the model of speed has to meet them in the simulator too.
        api: a hosted model to compare with, as ``openai/gpt-5-mini``.
        price: of one card for one hour; default: the cheapest list price of the card.
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
        whole_instances: pay all cards of a listed instance, also those that stay unused.
        set: config keys to replace.
        offline: never ask the hub.
        calibration: a folder of ``measure``: its card and engine are estimated by what it measured.
        progress: called with requests that have ended in the simulator, and how many there are.
        flags: the engine's own flags with underscores; they hold for every option.

    Raises:
        BadQuestion: a value that cannot be read, or a card that is not known.
        SourceUnreachable: a file or the hub does not answer.
    """
    if trace is not None:
        prompt, output, rate = of_trace(trace, prompt, output, None if users else rate, users)
    goal = read_goal(
        users=users, rate=rate, think=think, context=context, prompt=prompt, output=output,
        shared_prefix=shared_prefix, hit_rate=hit_rate, ttft=ttft, tpot=tpot,
        percentile=percentile, budget=budget, max_gpus=max_gpus, size_at=size_at,
        sure=sure,
    )  # fmt: skip
    pricing = pricing_of(
        price=price, currency=currency, exchange_rate=exchange_rate, price_kind=price_kind,
        discount=discount, provider=provider, capital=capital, life_years=life_years,
        power_price=power_price, pue=pue, power_watts=power_watts,
        whole_instances=whole_instances,
    )  # fmt: skip
    models = _models(model, set, offline)
    cards, said = _cards(gpu, gpu_memory)
    named = engine_of(engine or "vllm")
    space = Space(
        models=models,
        devices=cards,
        named=gpu is not None,
        engine=None if engine is None else named.name,
        version=engine_version,
        pricing=pricing,
        quantise=allow_quantise,
        given=named.flags.parse(flags_of(flags)),
        calibration=None if calibration is None else read_calibration(calibration),
    )
    compared = None if api is None else _hosted(api, goal, models[0], pricing)

    def confirmed(best: list[Outcome]) -> list[Simulated]:
        return confirm(best, goal, progress) if simulate else []

    with _uncollected():
        return _answer(space, goal, compared, said, confirmed)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without the cyclic collector: thousands of plans are kept, none in a cycle, and walking over
    all of them again and again takes a third of the search.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _answer(
    space: Space,
    goal: Goal,
    compared: Hosted | None,
    said: tuple[str, ...],
    confirmed: Callable[[list[Outcome]], list[Simulated]],
) -> AdviseAnswer:
    planned, refused = sized(space, goal)
    outcomes = [least(one, goal) for one in planned]
    best = _best(outcomes)
    simulated = confirmed(best)
    options = _options(_confirmed(best, simulated), refused, goal)
    meets = bool(options) and options[0].fits
    return AdviseAnswer(
        goal=goal,
        space=space,
        options=tuple(options),
        frontier=tuple(frontier(outcomes, goal)),
        relax=() if meets else tuple(relaxed(outcomes, goal)),
        hosted=compared,
        simulated=tuple(simulated),
        risk=_risk(options, goal),
        said=said,
    )


def _risk(options: list[Option], goal: Goal) -> float | None:
    """The chance of preemptions of the first option, where it is sized below the peak."""
    one = options[0].outcome if options else None
    if goal.size_at is None or one is None or one.served is None:
        return None
    load, plan = one.sized.load, one.sized.plan
    return preemption_risk(plan, load.traffic, one.served.held) if load and plan else None


def _models(
    model: ModelSource | Sequence[ModelSource],
    overrides: Mapping[str, Any] | None,
    offline: bool,
) -> tuple[Model, ...]:
    several = isinstance(model, Sequence) and not isinstance(model, str)
    sources: Sequence[Any] = model if several else [model]  # type: ignore[assignment]
    if not 0 < len(sources) <= MOST_MODELS:
        raise BadValue(f"From 1 to {MOST_MODELS} models are compared, not {len(sources)}.")
    return tuple(open_model(one, overrides=overrides, offline=offline) for one in sources)


def _cards(
    gpu: str | Sequence[str] | None, gpu_memory: int | str | None
) -> tuple[tuple[Device, ...], tuple[str, ...]]:
    """The allowed cards, and what their names were taken to mean."""
    if gpu is None and gpu_memory is not None:
        raise BadValue("--gpu-memory is of a card that is named.", "Name it with --gpu.")
    if gpu is None:
        return tuple(filter(_is_complete, devices())), ()
    names = [part for one in ([gpu] if isinstance(gpu, str) else gpu) for part in one.split(",")]
    named = [name.strip() for name in names if name.strip()]
    if not 0 < len(named) <= MOST_NAMED:
        raise BadValue(f"--gpu names {len(named)} cards; 1 to {MOST_NAMED} are compared.")
    if gpu_memory is not None and len(named) > 1:
        raise BadValue("--gpu-memory is of one card.", f"--gpu names {len(named)}.")
    found = [device_named(name, gpu_memory) for name in named]
    return (
        tuple({device.name: device for device, _ in found}.values()),
        tuple(text for _, said in found for text in said),
    )


def _is_complete(device: Device) -> bool:
    """Memory, bandwidth and a dense peak are known."""
    figures = (device.memory_bytes, device.bandwidth_bytes_per_s, device.dense_flops)
    return all(figures) and not device.sliced and device.vendor != "CPU"


def _best(outcomes: list[Outcome]) -> list[Outcome]:
    """The best of each card, checkpoint and engine, the best of all first."""
    best: dict[tuple[str, ...], Outcome] = {}
    for one in outcomes:
        candidate = one.sized.candidate
        variant = candidate.variant
        key = (
            candidate.device.name,
            variant.model.name,
            variant.stored,
            candidate.engine.name,
        )
        if key not in best or one.order < best[key].order:
            best[key] = one
    return sorted(best.values(), key=lambda one: one.order)


def _confirmed(ordered: list[Outcome], simulated: list[Simulated]) -> list[Outcome]:
    """The order with what was simulated in its place: what met the goals there is the first, what
    did not has another miss.
    """
    if not simulated:
        return ordered
    last = simulated[-1]
    missed = {id(one.outcome.sized): one for one in simulated if one.why_not is not None}
    found = []
    for one in ordered:
        row = missed.get(id(one.sized))
        if row is not None and row.why_not is not None and one.sized is not last.outcome.sized:
            miss = Miss(goal=SIMULATED, ratio=1.0 + 1e-9, said=row.why_not)
            found.append(replace(row.outcome, misses=(miss,)))
        else:
            found.append(last.outcome if one.sized is last.outcome.sized else one)
    if last.why_not is not None:
        return sorted(found, key=lambda one: one.order)
    rest = [one for one in found if one is not last.outcome]
    return [last.outcome, *sorted(rest, key=lambda one: one.order)]


def _options(ordered: list[Outcome], refused: list[Refused], goal: Goal) -> list[Option]:
    """The outcomes in their order, each with its reason; then the refused."""
    options = [
        Option(goal=goal, outcome=one, why_not=_why_not(one, ordered[0], place))
        for place, one in enumerate(ordered)
    ]
    return options + [
        Option(goal=goal, outcome=None, refused=row, why_not=row.why) for row in refused
    ]


def _why_not(one: Outcome, first: Outcome, place: int) -> str | None:
    """What an option misses; of one that misses nothing what it costs more."""
    if one.misses:
        return "; ".join(miss.said for miss in one.misses)
    if place == 0:
        return None
    cost, least_cost = one.per_hour, first.per_hour
    if cost is None and least_cost is None and one.gpus > first.gpus:
        return "meets the goals with more cards"
    if cost is None and least_cost is not None:
        return "meets the goals; no price of it is listed (--price)"
    if cost is not None and least_cost is not None and cost > least_cost * 1.0005:
        more = f"{cost / least_cost:.2f} × the cost" if least_cost else "a cost"
        return f"meets the goals at {more}"
    same = "at the same cost" if cost is not None else "with as many cards"
    return f"meets the goals {same}, {_beaten_by(one, first)}"


def _beaten_by(one: Outcome, first: Outcome) -> str:
    """What decides between two of one cost."""
    if one.is_tight and not first.is_tight:
        return "and may miss them within the band"
    mine, other = one.merit[-3:], first.merit[-3:]
    said = ("in a format that changes more", "with more cards", "and is no faster")
    return next((word for word, a, b in zip(said, mine, other, strict=True) if a > b), said[-1])


def _hosted(api: str, goal: Goal, model: Model, pricing: Pricing) -> Hosted:
    """The API's price of the average request of the goal."""
    if pricing.currency != USD and pricing.exchange_rate is None:
        raise BadValue(
            f"The price of an API is in dollars, and --currency is {pricing.currency}.",
            "Give --exchange-rate.",
        )
    traffic = goal.traffic(model.max_context_tokens)
    request = Request(
        prompt_tokens=traffic.prompt_tokens,
        output_tokens=traffic.output_tokens,
        cached_tokens=max(0.0, traffic.prompt_tokens - traffic.fresh_tokens),
    )
    rate = 1.0 if pricing.currency == USD else pricing.exchange_rate or 1.0
    return hosted(api, request, currency=pricing.currency, dollars=rate)
