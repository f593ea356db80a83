"""What a person sees of a fit: the card's ledger, what it holds, what each lever buys."""

from __future__ import annotations

from kvplan.cli.table import NONE, Table
from kvplan.core.units import format_bytes, format_gib, format_seconds
from kvplan.planning.cost import GIVEN, Cost
from kvplan.planning.fit import FitAnswer
from kvplan.planning.handover import Handover
from kvplan.planning.speed import SpeedEstimate


def tables(answer: FitAnswer) -> list[Table]:
    """The tables of an answer, the most wanted first."""
    node, plan = answer.question.node, answer.plan
    cards = f"{node.gpus} × {node.device.name}" if node.gpus > 1 else node.device.name
    verdict = answer.reason or (
        f"fits: {answer.sequences:,} conversations of {plan.asked.context:,} tokens"
    )
    ledger = Table(
        f"{plan.model.name} on {cards}: {verdict}",
        ("one card", "GiB", "source"),
        (
            *(
                (term.name.replace("_", " "), format_gib(term.num_bytes), term.source)
                for term in plan.ledger
            ),
            ("total", format_gib(plan.ledger.total), ""),
        ),
        "lrl",
    )
    said = Table("", ("its log will say",), tuple((line,) for line in plan.prints), "l")
    tiers = _tiers(answer)
    return [
        ledger,
        _figures(answer),
        *([said] if plan.prints else []),
        *([tiers] if tiers.rows else []),
        _levers(answer),
    ]


def _figures(answer: FitAnswer) -> Table:
    context = answer.plan.asked.context
    speed, cost = answer.speed, answer.cost
    rows = [
        ("one conversation on a card", format_bytes(answer.plan.sequence_bytes(context))),
        (f"conversations of {context:,} tokens", f"{answer.sequences:,}"),
        (f"longest context of {answer.wanted:,}", f"{answer.max_context:,} tokens"),
    ]
    if speed:
        rows += [
            (f"decode step of {speed.batch:,}, at least", format_seconds(speed.step_s)),
            ("  reading weights", format_seconds(speed.weights_read_s)),
            ("  reading the cache", format_seconds(speed.cache_read_s)),
            ("tokens/s each, at most", f"{speed.tokens_per_s_per_sequence:,.1f}"),
            *_estimate(speed.estimate),
        ]
    if answer.handover:
        rows += _handover(answer.handover)
    if cost:
        rows += _money(cost)
    return Table("", ("what it holds", ""), tuple(rows), "lr")


def _money(cost: Cost) -> list[tuple[str, str]]:
    """The hour by its price and where that is from, and what it comes to."""
    currency = cost.currency
    rate = cost.rate
    priced = "" if rate.kind == rate.said == GIVEN else f" ({rate.said})"
    rows = [(f"an hour{priced}", f"{cost.per_hour:,.2f} {currency}")]
    if cost.per_sequence_hour is not None:
        rows.append(("a conversation-hour", f"{cost.per_sequence_hour:,.4f} {currency}"))
    if cost.per_million_input_tokens is not None:
        price = f"{cost.per_million_input_tokens:,.4f} {currency}"
        rows.append(("a million input tokens, at least", price))
    if cost.per_million_output_tokens is not None:
        price = f"{cost.per_million_output_tokens:,.2f} {currency}"
        rows.append(("a million output tokens, at least", price))
    pair = (cost.estimated_per_million_input_tokens, cost.estimated_per_million_output_tokens)
    if pair[0] is not None and pair[1] is not None:
        rows.append(("  estimated, in and out", f"{pair[0]:,.4f} and {pair[1]:,.2f} {currency}"))
    return rows


def _estimate(found: SpeedEstimate | None) -> list[tuple[str, str]]:
    """What is expected, with its error."""
    if found is None:
        return []
    off = f"÷ or × {1 + found.estimate.error:.2f}"
    rows = [
        (f"estimate ({off}): a decode step", format_seconds(found.decode_step_s)),
        ("  tokens/s each", f"{found.tokens_per_s_per_sequence:,.1f}"),
        ("  tokens/s together", f"{found.tokens_per_s_per_sequence * found.batch:,.0f}"),
        (f"  a prompt of {found.prompt:,} tokens", _prefill(found.prefill_s)),
    ]
    served = found.served
    if served is None:
        return rows
    return [
        *rows,
        ("clients in a loop: to the first token", format_seconds(served.ttft_s)),
        *([("  in the queue before", format_seconds(served.queue_s))] if served.queue_s else []),
        ("  a token after it", format_seconds(served.tpot_s)),
        ("  output tokens/s together", f"{served.tokens_per_s:,.0f}"),
    ]


def _prefill(seconds: float | None) -> str:
    return (
        "not known: its operations/s are in no source"
        if seconds is None
        else format_seconds(seconds)
    )


def _handover(apart: Handover) -> list[tuple[str, str]]:
    """Prompts on their own cards: computed, sent, decoded; and the same on the decoding cards."""
    found, prefill = apart.found, apart.prefill
    cards = f"{prefill.gpus} × {prefill.device.name}" if prefill.gpus > 1 else prefill.device.name
    off = f"÷ or × {1 + found.error:.2f}"
    moved = f"{format_bytes(found.moved_bytes)} at {prefill.link_bytes_per_s / 1e9:g} GB/s"
    lacks = "" if apart.fits else " (which does not fit there)"
    here = [("  here instead", format_seconds(apart.here_s))] if apart.here_s is not None else []
    return [
        (f"a prompt on {cards}{lacks} ({off})", format_seconds(found.prefill_s)),
        *here,
        (f"  its cache over the link, {moved}", format_seconds(found.transfer_s)),
        ("  to the first token here, without a queue", format_seconds(found.ttft_s)),
        ("  a token after it", format_seconds(found.tpot_s)),
        ("  output tokens/s together", f"{found.tokens_per_s:,.0f}"),
        ("  such sets that keep these busy", f"{found.prefills_per_decoder:.2g}"),
    ]


def _tiers(answer: FitAnswer) -> Table:
    """Host memory that a flag asks for: what it keeps, and loading beside computing again."""
    rows = tuple(
        (
            found.tier.name.replace("_", " "),
            format_gib(found.tier.rank_bytes),
            format_gib(found.tier.host_bytes),
            f"{found.tier.tokens:,}",
            format_seconds(found.loading.load_s) if found.loading else NONE,
            format_seconds(found.loading.recompute_s) if found.loading else NONE,
            found.tier.source,
        )
        for found in answer.tiers
        if found.tier.asked
    )
    tokens = f"{answer.plan.asked.context:,} tokens: load at least"
    columns = ("host memory", "a rank", "a host", "tokens", tokens, "compute at least", "source")
    return Table("", columns, rows, "lrrrrrl")


def _levers(answer: FitAnswer) -> Table:
    rows = tuple(
        (
            lever.name,
            lever.change,
            f"{lever.sequences:,}",
            f"× {lever.factor:.2f}" if lever.factor is not None else NONE,
            lever.note,
        )
        for lever in answer.levers
    )
    return Table("", ("lever", "flag", "conversations", "", "note"), rows, "llrrl")


def explanation(answer: FitAnswer) -> list[str]:
    """The arithmetic of an answer, a sentence a line."""
    q, plan = answer.question, answer.plan
    context = q.asked.context
    terms = " − ".join(f"{t.name} {format_gib(t.num_bytes)}" for t in plan.ledger.terms[:-1])
    own, pool = plan.sequence_bytes(context), plan.ledger.pool_bytes
    left = f"{format_gib(q.node.memory_bytes)} − {terms} = {format_gib(pool)}"
    limit = plan.capacity(context).limited_by
    lines = [
        f"{q.node.device.title}: {left} for the cache.",
        f"A conversation of {context:,} tokens holds {own:,} B on a card;",
        f"{pool:,} B hold {answer.sequences:,} of them; {limit} is what stops more.",
        *(f"The log will say: {line}" for line in plan.prints),
    ]
    lines += plan.explain(context)
    if answer.speed and q.bandwidth_bytes_per_s:
        lines.append(
            f"A step of {answer.speed.batch:,} reads weights and cache at "
            f"{q.bandwidth_bytes_per_s / 1e9:,.0f} GB/s: {format_seconds(answer.speed.step_s)}. "
            "A bound: no step is faster."
        )
    if answer.speed and answer.speed.estimate:
        lines += answer.speed.estimate.explanation()
    if answer.cost:
        lines.append(f"An hour of one card: {answer.cost.rate.source}.")
    settings = {flag: (s.value, s.source) for flag, s in plan.launch.settings.items()}
    lines += [
        f"  {flag} = {value} ({origin})"
        for flag, (value, origin) in (settings | dict(q.sources)).items()
    ]
    return lines
