"""What a person sees of a size: its tables, and its arithmetic in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from kvplan.cli.table import NONE, Table
from kvplan.core.formats import Format
from kvplan.core.layers import Layer
from kvplan.core.units import format_bytes, format_count, format_tokens
from kvplan.planning.size import SizeAnswer, SizeAnswers, slope_below_window


def tables(answer: SizeAnswer | SizeAnswers) -> list[Table]:
    """The tables of an answer, the most wanted first."""
    return _side_by_side(answer.answers) if isinstance(answer, SizeAnswers) else _size(answer)


RECORD = (
    "model", "parameters", "weights_bytes", "kv_dtype", "bytes_per_token", "fixed_bytes",
    "tokens", "sequences", "bytes", "raw_bytes", "scale_bytes", "marginal_bytes_per_token",
)  # fmt: skip


def records(
    answer: SizeAnswer | SizeAnswers,
) -> tuple[tuple[str, ...], list[tuple[object, ...]]]:
    """The columns and a row for each model and length, as plain numbers."""
    answers = answer.answers if isinstance(answer, SizeAnswers) else (answer,)
    rows = []
    for body in (one.body() for one in answers):
        model = body["model"]
        known = model | body | {"model": model["name"]}
        rows += [tuple((known | at)[key] for key in RECORD) for at in body["contexts"]]
    return RECORD, rows


def explanation(answer: SizeAnswer | SizeAnswers) -> list[str]:
    """The arithmetic of an answer, a sentence a line."""
    answers = answer.answers if isinstance(answer, SizeAnswers) else (answer,)
    return [line for one in answers for line in _explain(one)]


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
        _contexts(answer),
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


def _contexts(answer: SizeAnswer) -> Table:
    """One model at each length; what a quantised format adds in scales stands apart."""
    scaled = any(answer.stored(tokens).scales for tokens in answer.contexts)
    columns = [
        "tokens",
        "bytes",
        *(["elements", "scales"] if scaled else []),
        "size",
        "a token more",
    ]
    rows = []
    for tokens in answer.contexts:
        stored = answer.stored(tokens)
        apart = [f"{stored.raw:,}", f"{stored.scales:,}"] if scaled else []
        more = f"{answer.curve.marginal(tokens) * answer.sequences:,} B"
        size = format_bytes(stored.total)
        rows.append((format_tokens(tokens), f"{stored.total:,}", *apart, size, more))
    return Table(_lengths(answer.sequences), tuple(columns), tuple(rows), "r" * len(columns))


def _contexts_of(answers: Sequence[SizeAnswer]) -> Table:
    """Several models at the same lengths."""
    lengths = sorted({tokens for answer in answers for tokens in answer.contexts})
    columns = ("tokens", *(answer.model.name for answer in answers))
    rows = tuple(
        (format_tokens(tokens), *(_at(answer, tokens) for answer in answers)) for tokens in lengths
    )
    return Table(_lengths(answers[0].sequences), columns, rows, "r" * len(columns))


def _at(answer: SizeAnswer, tokens: int) -> str:
    """A model's size at a length that was asked of it or that it takes."""
    longest = answer.model.max_context_tokens
    asked = tokens in answer.contexts or longest is None or tokens <= longest
    return format_bytes(answer.bytes(tokens)) if asked else NONE


def _lengths(sequences: int) -> str:
    many = "One conversation" if sequences == 1 else f"{sequences:,} conversations"
    return f"{many} of so many tokens"


def _side_by_side(answers: Sequence[SizeAnswer]) -> list[Table]:
    columns = ("model", "parameters", "weights", "a token", "multi-head", "fixed", "maximum")
    rows = []
    for answer in answers:
        weights, longest = answer.model.weights, answer.model.max_context_tokens
        multi, slope = answer.multi_head_bytes_per_token, answer.bytes_per_token
        rows.append(
            (
                answer.model.name,
                format_count(weights.parameters) if weights else NONE,
                format_bytes(weights.num_bytes) if weights else NONE,
                f"{slope:,} B" if slope is not None else "see lengths",
                f"{multi:,} B" if multi is not None else NONE,
                f"{answer.fixed_bytes:,} B" if answer.fixed_bytes else NONE,
                format_tokens(longest) if longest else NONE,
            )
        )
    return [
        Table(f"Cache in {answers[0].fmt.name}", columns, tuple(rows), "lrrrrrr"),
        _contexts_of(answers),
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


def _explain(answer: SizeAnswer) -> list[str]:
    model, curve = answer.model, answer.curve
    lines = [f"{model.name}, from {model.source}:"]
    lines += [
        f"  {count} × {layer.kind.replace('_', ' ')}: {layer.formula(answer.fmt)}"
        for layer, count in curve.layers
    ]
    if answer.fmt.note:
        lines.append(f"  {answer.fmt.name}: {answer.fmt.note}")
    if curve.per_token is not None:
        fixed = f" and {curve.fixed_bytes:,} B whatever the length" if curve.fixed_bytes else ""
        lines.append(f"  together {curve.per_token:,} B a token{fixed}")
    lines += [
        f"  {tokens:,} tokens × {answer.sequences:,}: {answer.bytes(tokens):,} B"
        f" = {format_bytes(answer.bytes(tokens))}"
        for tokens in answer.contexts
    ]
    multi = answer.multi_head_bytes_per_token
    if multi is not None and multi != curve.per_token:
        lines.append(f"  with a key and a value for every query head: {multi:,} B a token")
    if model.weights:
        size = model.weights.num_bytes
        lines.append(f"  weights: {model.weights.source} = {size:,} B = {format_bytes(size)}")
    lines += [
        f"  {key} = {_brief(value)} ({origin})" for key, (value, origin) in model.facts().items()
    ]
    return lines


def _brief(value: object) -> str:
    text = str(value)
    return text if len(text) <= 70 else f"{text[:67]}…"
