"""What a person sees of each answer: its tables, and its arithmetic in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from kvplan.cli.table import Table
from kvplan.core.formats import FORMATS, Format
from kvplan.core.layers import Layer
from kvplan.core.units import (
    format_bytes,
    format_count,
    format_gib,
    format_seconds,
    format_tokens,
)
from kvplan.planning.answer import Answer
from kvplan.planning.fit import FitAnswer
from kvplan.planning.size import SizeAnswer, SizeAnswers, slope_below_window

NONE = "–"


def tables(answer: Answer) -> list[Table]:
    """The tables of an answer, the most wanted first."""
    if isinstance(answer, SizeAnswers):
        return _side_by_side(answer.answers)
    if isinstance(answer, SizeAnswer):
        return _size(answer)
    if isinstance(answer, FitAnswer):
        return _fit(answer)
    raise TypeError(type(answer).__name__)


def explanation(answer: Answer) -> list[str]:
    """The arithmetic of an answer, a sentence a line."""
    if isinstance(answer, SizeAnswers):
        return [line for one in answer.answers for line in explanation(one)]
    if isinstance(answer, SizeAnswer):
        return _explain_size(answer)
    if isinstance(answer, FitAnswer):
        return _explain_fit(answer)
    raise TypeError(type(answer).__name__)


def _title(answer: SizeAnswer) -> str:
    model = answer.model
    parts = [model.name, model.architecture or model.model_type]
    if model.weights:
        count = format_count(model.weights.parameters)
        active = model.weights.active_parameters
        if active != model.weights.parameters:
            count += f" ({format_count(active)} active)"
        parts += [f"{count} parameters", f"{format_bytes(model.weights.num_bytes)} of weights"]
    if model.max_context_tokens:
        parts.append(f"up to {format_tokens(model.max_context_tokens)} tokens")
    return " · ".join([*parts, f"cache in {answer.fmt.name}"])


def _size(answer: SizeAnswer) -> list[Table]:
    found = [
        Table(
            _title(answer),
            ("layers", "count", "KV heads", "K", "V", "window", "a token", "fixed", "all layers"),
            tuple(_layer(layer, count, answer.fmt) for layer, count in answer.curve.layers),
            "lrrrrrrrr",
        ),
        _contexts([answer]),
    ]
    return found + _positions(answer)


def _layer(layer: Layer, count: int, fmt: Format) -> tuple[str, ...]:
    slope, fixed = slope_below_window(layer, fmt), layer.fixed_bytes(fmt)
    total = f"{slope * count:,} B a token" if slope else f"{fixed * count:,} B" if fixed else NONE
    shown = (layer.heads, layer.key_width, layer.value_width, layer.window)
    return (
        layer.kind.replace("_", " "),
        str(count),
        *(f"{value:,}" if value is not None else NONE for value in shown),
        f"{slope:,} B" if slope else NONE if slope == 0 else "in steps",
        f"{fixed:,} B" if fixed else NONE,
        total,
    )


def _contexts(answers: Sequence[SizeAnswer]) -> Table:
    first = answers[0]
    many = len(answers) > 1
    columns = ["tokens"]
    for answer in answers:
        columns += [answer.model.name] if many else ["bytes", "size", "a token more"]
    rows = []
    for tokens in first.contexts:
        row = [format_tokens(tokens)]
        for answer in answers:
            held = answer.bytes(tokens)
            more = answer.curve.marginal(tokens) * answer.sequences
            row += [format_bytes(held)] if many else [
                f"{held:,}", format_bytes(held), f"{more:,} B"
            ]  # fmt: skip
        rows.append(tuple(row))
    count = first.sequences
    title = "One conversation" if count == 1 else f"{count:,} conversations"
    return Table(f"{title} of so many tokens", tuple(columns), tuple(rows), "r" * len(columns))


def _side_by_side(answers: Sequence[SizeAnswer]) -> list[Table]:
    columns = ("model", "parameters", "weights", "a token", "multi-head", "fixed", "maximum")
    rows = []
    for answer in answers:
        weights = answer.model.weights
        multi, slope = answer.multi_head_bytes_per_token, answer.bytes_per_token
        rows.append(
            (
                answer.model.name,
                format_count(weights.parameters) if weights else NONE,
                format_bytes(weights.num_bytes) if weights else NONE,
                f"{slope:,} B" if slope is not None else "see lengths",
                f"{multi:,} B" if multi is not None else NONE,
                f"{answer.fixed_bytes:,} B" if answer.fixed_bytes else NONE,
                format_tokens(answer.model.max_context_tokens or 0),
            )
        )
    return [
        Table(f"Cache in {answers[0].fmt.name}", columns, tuple(rows), "lrrrrrr"),
        _contexts(answers),
    ]


def _positions(answer: SizeAnswer) -> list[Table]:
    found = answer.positions
    if found is None:
        return []
    rows = []
    if found.prompt:
        rows += [
            ("prompt positions", f"{found.prompt * found.output:,}", f"{found.prompt:,}"),
            ("all positions", f"{found.without_cache:,}", f"{found.with_cache:,}"),
        ]
    if found.shared_prefix:
        all_visits = found.requests * found.shared_prefix
        name = f"shared prefix, {found.requests:,} requests"
        rows.append((name, f"{all_visits:,}", f"{found.shared_prefix:,}"))
    return [Table("Positions processed", ("", "without", "with cache"), tuple(rows), "lrr")]


def _explain_size(answer: SizeAnswer) -> list[str]:
    model, curve = answer.model, answer.curve
    lines = [f"{model.name}, from {model.source}:"]
    lines += [
        f"  {count} × {layer.kind.replace('_', ' ')}: {layer.formula(answer.fmt)}"
        for layer, count in curve.layers
    ]
    if curve.per_token is not None:
        fixed = f" and {curve.fixed_bytes:,} B whatever the length" if curve.fixed_bytes else ""
        lines.append(f"  together {curve.per_token:,} B a token{fixed}")
    lines += [
        f"  {tokens:,} tokens × {answer.sequences:,}: {answer.bytes(tokens):,} B"
        f" = {format_bytes(answer.bytes(tokens))}"
        for tokens in answer.contexts
    ]
    lines += [
        f"  {key} = {_brief(value)} ({origin})" for key, (value, origin) in model.facts().items()
    ]
    return lines


def _brief(value: object) -> str:
    text = str(value)
    return text if len(text) <= 70 else f"{text[:67]}…"


def _fit(answer: FitAnswer) -> list[Table]:
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
    return [ledger, _figures(answer), _levers(answer)]


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
        ]
    if cost:
        rows.append(("an hour", f"{cost.per_hour:,.2f} {cost.currency}"))
    if cost and cost.per_sequence_hour is not None:
        rows.append(("a conversation-hour", f"{cost.per_sequence_hour:,.4f} {cost.currency}"))
    if cost and cost.per_million_output_tokens is not None:
        price = f"{cost.per_million_output_tokens:,.2f} {cost.currency}"
        rows.append(("a million output tokens, at least", price))
    return Table("", ("what it holds", ""), tuple(rows), "lr")


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


def _explain_fit(answer: FitAnswer) -> list[str]:
    q, plan = answer.question, answer.plan
    context = q.asked.context
    terms = " − ".join(f"{t.name} {format_gib(t.num_bytes)}" for t in plan.ledger.terms[:-1])
    own, pool = plan.sequence_bytes(context), plan.ledger.pool_bytes
    left = f"{format_gib(q.node.memory_bytes)} − {terms} = {format_gib(pool)}"
    lines = [
        f"{q.node.device.title}: {left} for the cache.",
        f"A conversation of {context:,} tokens holds {own:,} B on a card;",
        f"{pool:,} ÷ {own:,} = {answer.sequences:,} whole ones.",
    ]
    fmt = FORMATS[plan.launch["--kv-dtype"]]
    lines += [
        f"  {count} × {layer.kind.replace('_', ' ')}: {layer.formula(fmt)}"
        for layer, count in plan.model.layers()
    ]
    if answer.speed and q.bandwidth_bytes_per_s:
        lines.append(
            f"A step of {answer.speed.batch:,} reads weights and cache at "
            f"{q.bandwidth_bytes_per_s / 1e9:,.0f} GB/s: {format_seconds(answer.speed.step_s)}. "
            "A bound: no step is faster."
        )
    settings = {flag: (s.value, s.source) for flag, s in plan.launch.settings.items()}
    lines += [
        f"  {flag} = {value} ({origin})"
        for flag, (value, origin) in (settings | dict(q.sources)).items()
    ]
    return lines
