"""What a person sees of an advice: the choice, what it does, who lost and why, what more buys."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kvplan.cli.table import NONE, Table
from kvplan.core.units import format_seconds
from kvplan.engines.names import LAYERED
from kvplan.planning.advise.answer import AdviseAnswer
from kvplan.planning.advise.option import Option, cache_of
from kvplan.planning.advise.outcome import Outcome
from kvplan.planning.advise.relax import Relaxed
from kvplan.planning.cost.of_plan import HOUR_S

SHOWN = 8
NOT_A_CELL = ("layout", "launch", "misses", "price")
POINTS = 6
WHY = 110  # characters of a reason in a cell


def tables(answer: AdviseAnswer) -> list[Table]:
    """The choice, the other options, what the frontier offers or what to relax."""
    found = [_choice(answer)]
    if answer.relax:
        found.append(_relax(answer))
    found.append(_options(answer))
    if answer.best and len(answer.frontier) > 1:
        found.append(_frontier(answer))
    return found


def _who(answer: AdviseAnswer) -> str:
    goal = answer.goal
    models = ", ".join(model.name for model in answer.space.models)
    if goal.rate_per_s is not None:
        return f"{models} for {_rate(goal.rate_per_s)}"
    users = goal.users or 1
    return f"{models} for {users:,} user{'s' if users > 1 else ''}"


def _rate(per_s: float) -> str:
    return f"{per_s:.3g} requests/s" if per_s >= 0.1 else f"{per_s * HOUR_S:.3g} requests/h"


def _choice(answer: AdviseAnswer) -> Table:
    option = answer.nearest
    if option is None or option.outcome is None:
        why = answer.options[0].why_not if answer.options else None
        rows = (("why not", why or NONE),)
        return Table(f"{_who(answer)}: no card of these serves it", ("what", ""), rows, "ll")
    one = option.outcome
    said = f"{_cards(one)}{_hour(one)}"
    if not answer.best:
        said = f"nothing meets the goals; the nearest is {said}"
    return Table(f"{_who(answer)}: {said}", ("what", ""), tuple(_facts(answer, option, one)), "ll")


def _cards(one: Outcome) -> str:
    return f"{one.gpus} × {one.sized.candidate.device.name}"


def _hour(one: Outcome) -> str:
    cost, rate = one.per_hour, one.sized.rate
    return "" if cost is None or rate is None else f" at {cost:,.2f} {rate.currency} an hour"


def _facts(answer: AdviseAnswer, option: Option, one: Outcome) -> list[tuple[str, str]]:
    candidate, plan = one.sized.candidate, one.sized.plan
    copies = f"{one.replicas} × " if one.replicas > 1 else ""
    rows = [("start", f"{copies}{plan.command}" if plan and plan.starts else NONE)]
    if len(answer.space.models) > 1:
        rows.append(("model", option.model))
    rows.append(("layout", f"{copies}{candidate.layout.said}, {_formats(one)}"))
    served, load = one.served, one.sized.load
    if served is None or load is None:
        return [*rows, ("why not", option.why_not or NONE)]
    goal, traffic = answer.goal, load.traffic
    at = f"p{goal.percentile * 100:g}"
    wide = f"÷ or × {1 + one.sized.error:.2f}"
    held = f"{one.sequences:,} sequences of {traffic.sized_tokens:,} tokens"
    rows.append(("holds", f"{held}; {served.held * one.replicas:,} are needed"))
    first = format_seconds(served.ttft_s)
    if traffic.is_judged_cold:
        first += f" for {traffic.judged_tokens:,.0f} new tokens, "
        first += f"{format_seconds(served.warm_ttft_s)} for a turn of {traffic.warm_tokens:,.0f}"
    missed = _may_miss(one, served.ttft_s, goal.ttft_s)
    rows.append((f"first token, {at}", f"{first} ({wide}{missed})"))
    missed = _may_miss(one, served.tpot_s, goal.tpot_s)
    rows.append((f"time per token, {at}", f"{format_seconds(served.tpot_s)} ({wide}{missed})"))
    tokens = f"{option.output_tokens_per_s or 0:,.0f} output tokens/s"
    rows.append(("serves", f"{_rate(served.rate_per_s * one.replicas)}, {tokens}"))
    if answer.risk is not None:
        room = f"room is for p{(goal.size_at or 0) * 100:g} of the lengths"
        rows.append(("preempts", f"in {answer.risk:.2%} of moments a sequence has to wait: {room}"))
    rows += _simulated(answer, one)
    rows += _money(answer, option, one)
    if not answer.best:
        rows.append(("why not", option.why_not or NONE))
    return rows


def _simulated(answer: AdviseAnswer, one: Outcome) -> list[tuple[str, str]]:
    """What the simulator saw of the choice."""
    for row in answer.simulated:
        if row.outcome is one:
            times = (
                f"first token {format_seconds(row.ttft_s)}, {format_seconds(row.tpot_s)} a token"
            )
            said = f"{times} at p{row.percentile * 100:g} of {row.requests:,} requests, "
            said += f"{row.hit_rate:.0%} hits, {row.preemptions:,} preemptions"
            return [("simulated", said)]
    return []


def _may_miss(one: Outcome, value: float, most: float | None) -> str:
    """A word where the band of a time that is met goes beyond its goal."""
    if most is None or value > most or value * (1 + one.sized.error) <= most:
        return ""
    return f", so {format_seconds(most)} may be missed"


def _formats(one: Outcome) -> str:
    plan, variant = one.sized.plan, one.sized.candidate.variant
    cache = cache_of(plan) if plan else "auto"
    made = ""
    if variant.made:
        layered = one.sized.candidate.engine.name in LAYERED
        made = " (made by llama-quantize)" if layered else " (made on loading)"
    return (
        f"weights in {variant.stored}{made}, cache {'as the model' if cache == 'auto' else cache}"
    )


def _money(answer: AdviseAnswer, option: Option, one: Outcome) -> list[tuple[str, str]]:
    cost, rate = one.per_hour, one.sized.rate
    if cost is None or rate is None:
        return []
    rows = [("price", f"{rate.per_gpu_hour:,.2f} {rate.currency} a card and hour ({rate.said})")]
    user = option.per_user_hour
    whom = "user" if answer.goal.users else "request in flight"
    tokens = option.output_tokens_per_s
    million = f"; a million output tokens {cost / (tokens * HOUR_S) * 1e6:,.2f}" if tokens else ""
    if user is not None:
        rows.append(("comes to", f"{user:,.4f} an hour for each {whom}{million}"))
    return rows + _hosted(answer, one, cost)


def _hosted(answer: AdviseAnswer, one: Outcome, cost: float) -> list[tuple[str, str]]:
    api, served = answer.hosted, one.served
    if api is None or served is None:
        return []
    rate = served.rate_per_s * one.replicas
    cached = api.per_request_cached
    plain = api.per_request * rate * HOUR_S
    said = f"{plain:,.2f} {api.currency} an hour for the same requests"
    if cached is not None:
        said += f", {cached * rate * HOUR_S:,.2f} with its prompt cache"
    even = api.break_even(cost)
    rows = [(f"{api.provider} {api.model}", f"{said} ({api.source})")]
    if even is not None:
        share = "less than it serves" if even <= rate else "more than these cards serve"
        uncached = api.break_even(cost, cached=False)
        beside = f"; without its cache at {_rate(uncached)}" if cached and uncached else ""
        rows.append(("breaks even at", f"{_rate(even)}, {share}{beside}"))
    return rows


def _relax(answer: AdviseAnswer) -> Table:
    rows = tuple(
        (row.goal, _amount(row.goal, row.asked), _amount(row.goal, row.needed),
         f"{_cards(row.outcome)}, {row.outcome.sized.candidate.layout.said}", _price(row))
        for row in answer.relax
    )  # fmt: skip
    together = any(row.together for row in answer.relax)
    title = "No single goal is enough: relax these together" if together else "Relax one of them"
    return Table(title, ("goal", "asked", "reachable", "with", "an hour"), rows, "lrrlr")


def _amount(goal: str, value: float) -> str:
    if goal in ("--ttft", "--tpot"):
        return format_seconds(value)
    return f"{value:,.2f}" if goal == "--budget" else f"{value:,.3g}"


def _price(row: Relaxed) -> str:
    return NONE if row.outcome.per_hour is None else f"{row.outcome.per_hour:,.2f}"


def _options(answer: AdviseAnswer) -> Table:
    rows = tuple(_row(option) for option in answer.options[:SHOWN])
    more = len(answer.options) - len(rows)
    title = f"{len(rows)} of {len(answer.options)} options (--json has all)" if more > 0 else ""
    several = len(answer.space.models) > 1
    rows = rows if several else tuple(row[1:] for row in rows)
    columns = ("model", "cards", "layout", "weights", "cache", "holds", "first token", "per token",
               "an hour", "why not")  # fmt: skip
    aligned = "lllllrrrrl"
    return Table(
        title, columns if several else columns[1:], rows, aligned if several else aligned[1:]
    )


def _row(option: Option) -> tuple[str, ...]:
    one = option.outcome
    why = (option.why_not or "the choice")[:WHY]
    if one is None:
        return (option.model, option.gpu, NONE, NONE, NONE, NONE, NONE, NONE, NONE, why)
    served, plan = one.served, one.sized.plan
    copies = f"{one.replicas} × " if one.replicas > 1 else ""
    return (
        option.model,
        _cards(one),
        f"{copies}{one.sized.candidate.layout.said}",
        one.sized.candidate.variant.stored,
        cache_of(plan) if plan else NONE,
        f"{one.sequences:,}",
        format_seconds(served.ttft_s) if served else NONE,
        format_seconds(served.tpot_s) if served else NONE,
        NONE if one.per_hour is None else f"{one.per_hour:,.2f}",
        why,
    )


def _frontier(answer: AdviseAnswer) -> Table:
    """What more money buys."""
    shown = answer.frontier[:POINTS]
    rows = tuple(
        (
            f"{one.per_hour or 0:,.2f}",
            format_seconds(one.served.tpot_s) if one.served else NONE,
            format_seconds(one.served.ttft_s) if one.served else NONE,
            _cards(one),
            f"{one.replicas} × {one.sized.candidate.layout.said}, {_formats(one)}",
            "yes" if one.meets else "no",
        )
        for one in shown
    )
    columns = ("an hour", "per token", "first token", "cards", "layout", "meets the goals")
    return Table("What money buys: cost against time per token", columns, rows, "rrrlll")


def records(answer: AdviseAnswer) -> tuple[Sequence[str], Iterable[Sequence[object]]]:
    """Every option as a row of values."""
    rows = [option.to_dict() for option in answer.options]
    kept = [name for name in rows[0] if name not in NOT_A_CELL] if rows else []
    return kept, [[_cell(row[name]) for name in kept] for row in rows]


def _cell(value: object) -> object:
    return "" if value is None else value


def explanation(answer: AdviseAnswer) -> list[str]:
    """How the choice was made, a sentence a line."""
    option = answer.nearest
    lines = [
        f"{len(answer.space.devices):,} kinds of card were planned with their layouts and formats.",
        "Each is on the fewest replicas that meet the goals.",
    ]
    one = option.outcome if option else None
    if one is None or one.served is None or one.sized.load is None:
        return lines
    load, served = one.sized.load, one.served
    running = served.running / load.ranks
    step, adds = format_seconds(load.step_s(running)), format_seconds(load.prompt_s)
    taken = load.slowed(served.rate_per_s / load.ranks)
    at = f"{running:,.1f} sequences at {load.traffic.mean_tokens:,.0f} tokens"
    lines.append(f"A decode step of {at}: {step} ({load.cost.source}).")
    lines.append(
        f"A prompt of {load.traffic.fresh_tokens:,.0f} new tokens adds {adds} to the steps that "
        f"compute it; {served.rate_per_s:.3g} of them a second come to a replica."
    )
    lines.append(f"So prompts take {taken:.0%} of the time, and the rest goes to tokens.")
    if one.sized.rate is not None:
        lines.append(f"An hour of one card: {one.sized.rate.source}.")
    return lines
