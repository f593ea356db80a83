"""``size``: what one token and one conversation of a model keep, layer kind by layer kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from kvplan.core.curve import Curve
from kvplan.core.errors import BadValue
from kvplan.core.formats import Format, Stored, parse_format
from kvplan.core.layers import Layer
from kvplan.core.model import Model
from kvplan.core.units import parse_count, parse_tokens
from kvplan.planning.answer import Answer
from kvplan.planning.positions import Positions, count_positions
from kvplan.readers.families.base import Options
from kvplan.readers.open_model import ModelSource, open_model

USUAL_CONTEXTS = (4096, 32768, 131072)
MAX_SEQUENCES = 1 << 32
MAX_CONTEXTS = 1024


@dataclass(frozen=True, slots=True)
class SizeAnswer(Answer):
    """The cache of one model: by layer kind, by length, and the work that it saves."""

    verb: ClassVar[str] = "size"

    model: Model
    fmt: Format
    contexts: tuple[int, ...]
    sequences: int
    positions: Positions | None

    @property
    def warnings(self) -> tuple[str, ...]:  # type: ignore[override]
        """What the reader assumed, and what the question overlooks."""
        longest = self.model.max_context_tokens
        over = [tokens for tokens in self.contexts if longest and tokens > longest]
        if not over:
            return self.model.warnings
        return (
            *self.model.warnings,
            f"{max(over):,} tokens are more than the {longest:,} that the model declares.",
        )

    @property
    def curve(self) -> Curve:
        """Bytes of one sequence by its length."""
        return self.model.curve(self.fmt)

    @property
    def bytes_per_token(self) -> int | None:
        """Bytes a token, where one figure exists."""
        return self.curve.per_token

    @property
    def multi_head_bytes_per_token(self) -> int | None:
        """The same with a key and a value for every query head."""
        layers = tuple((layer.multi_head(), count) for layer, count in self.curve.layers)
        return Curve(layers, self.fmt).per_token

    @property
    def fixed_bytes(self) -> int:
        """Bytes of a sequence that do not depend on its length."""
        return self.curve.fixed_bytes

    def stored(self, tokens: int) -> Stored:
        """Elements and scales of all sequences after ``tokens`` tokens each, in bytes."""
        return self.curve.stored(tokens).times(self.sequences)

    def bytes(self, tokens: int) -> int:
        """Bytes of all sequences after ``tokens`` tokens each, scales included."""
        return self.stored(tokens).total

    def body(self) -> dict[str, Any]:
        """The contract's keys of ``size``."""
        return {
            "model": describe_model(self.model),
            "kv_dtype": self.fmt.name,
            "layers": [layer_row(layer, count, self.fmt) for layer, count in self.curve.layers],
            "bytes_per_token": self.bytes_per_token,
            "multi_head_bytes_per_token": self.multi_head_bytes_per_token,
            "fixed_bytes": self.fixed_bytes,
            "contexts": [self._context(tokens) for tokens in self.contexts],
            "positions": self.positions.to_dict() if self.positions else None,
        }

    def _context(self, tokens: int) -> dict[str, int]:
        stored = self.stored(tokens)
        return {
            "tokens": tokens,
            "sequences": self.sequences,
            "bytes": stored.total,
            "raw_bytes": stored.raw,
            "scale_bytes": stored.scales,
            "marginal_bytes_per_token": self.curve.marginal(tokens) * self.sequences,
        }


@dataclass(frozen=True, slots=True)
class SizeAnswers(Answer):
    """Several models side by side."""

    verb: ClassVar[str] = "size"

    answers: tuple[SizeAnswer, ...]

    @property
    def warnings(self) -> tuple[str, ...]:  # type: ignore[override]
        """Every model's, each with its name."""
        return tuple(f"{one.model.name}: {text}" for one in self.answers for text in one.warnings)

    def body(self) -> dict[str, Any]:
        """``{"models": […]}``."""
        return {"models": [one.body() | {"warnings": list(one.warnings)} for one in self.answers]}


def size(
    model: ModelSource | Sequence[ModelSource],
    *,
    context: str | int | Sequence[str | int] | None = None,
    sequences: int = 1,
    kv_dtype: str = "bf16",
    set: Mapping[str, Any] | None = None,
    prompt: int | str | None = None,
    output: int | str | None = None,
    requests: int = 1,
    shared_prefix: int | str | None = None,
    encoder_tokens: int | str | None = None,
    assume: str = "",
    offline: bool = False,
) -> Any:
    """What one token and one conversation of a model keep.

    Args:
        model: a name, a path, ``-`` (standard input) or a parsed config; several for a comparison.
        context: lengths to answer at, as integers or like ``32k``; default: usual ones.
        sequences: conversations of that length.
        kv_dtype: the cache's storage format.
        set: config keys to replace, as ``{"num_key_value_heads": 32}``.
        prompt: prompt tokens, to count the positions that generation processes.
        output: answer tokens of the same.
        requests: requests that share a prefix.
        shared_prefix: tokens of that prefix.
        encoder_tokens: the encoder's length, for models with cross-attention.
        assume: ``full`` sizes a config of an unknown type as full attention.
        offline: never ask the hub.

    Returns:
        A ``SizeAnswer``, or ``SizeAnswers`` for several models.

    Raises:
        BadQuestion: a model, format or number that cannot be read.
        SourceUnreachable: a file or the hub does not answer.
    """
    if isinstance(model, Sequence) and not isinstance(model, str):
        if not model:
            raise BadValue("No model is named.", "Give one or more.")
        return SizeAnswers(
            tuple(
                size(
                    one,
                    context=context,
                    sequences=sequences,
                    kv_dtype=kv_dtype,
                    set=set,
                    prompt=prompt,
                    output=output,
                    requests=requests,
                    shared_prefix=shared_prefix,
                    encoder_tokens=encoder_tokens,
                    assume=assume,
                    offline=offline,
                )
                for one in model
            )
        )
    length = None if encoder_tokens is None else parse_tokens(encoder_tokens)
    found = open_model(
        model,
        overrides=set,
        options=Options(encoder_tokens=length),
        assume=assume,
        offline=offline,
    )
    return SizeAnswer(
        model=found,
        fmt=parse_format(kv_dtype),
        contexts=_contexts(context, found.max_context_tokens),
        sequences=parse_count(sequences, "--sequences", MAX_SEQUENCES),
        positions=count_positions(prompt, output, requests, shared_prefix),
    )


def _contexts(
    asked: str | int | Sequence[str | int] | None, longest: int | None
) -> tuple[int, ...]:
    if asked is None:
        usual = [tokens for tokens in USUAL_CONTEXTS if longest is None or tokens <= longest]
        return tuple(usual or [longest or USUAL_CONTEXTS[0]])
    if isinstance(asked, str):
        asked = [part for part in asked.split(",", MAX_CONTEXTS) if part.strip()]
    elif not isinstance(asked, Sequence):
        asked = [asked]
    if len(asked) > MAX_CONTEXTS:
        raise BadValue(f"--context names more than {MAX_CONTEXTS:,} lengths.")
    lengths = tuple(parse_tokens(one) for one in asked)
    if not lengths:
        raise BadValue("--context names no length.", "Write it like --context 4k,32k.")
    return lengths


def describe_model(model: Model) -> dict[str, Any]:
    """The contract's ``model`` object."""
    weights = model.weights
    return {
        "name": model.name,
        "architecture": model.architecture or model.model_type,
        "model_type": model.model_type,
        "source": model.source,
        "parameters": weights.parameters if weights else None,
        "active_parameters": weights.active_parameters if weights else None,
        "weights_bytes": weights.num_bytes if weights else None,
        "max_context_tokens": model.max_context_tokens,
        "confidence": model.confidence,
    }


def layer_row(layer: Layer, count: int, fmt: Format) -> dict[str, Any]:
    """One kind of layer: its shape, and what one such layer costs a sequence."""
    slope = slope_below_window(layer, fmt)
    fixed = layer.fixed_bytes(fmt)
    return {
        "kind": layer.kind,
        "count": count,
        "kv_heads": layer.heads,
        "key_dim": layer.key_width,
        "value_dim": layer.value_width,
        "window": layer.window,
        "bytes_per_token": slope,
        "fixed_bytes": fixed,
        "total_bytes_per_token": None if slope is None else slope * count,
        "total_fixed_bytes": fixed * count,
        "note": layer.note or layer.formula(fmt),
    }


def slope_below_window(layer: Layer, fmt: Format) -> int | None:
    """Bytes a token adds while it is within the window; None where it comes in steps."""
    slope = layer.per_token(fmt)
    if slope is not None or layer.period > 1 or not fmt.linear:
        return slope
    return layer.stored(1, fmt).total - layer.stored(0, fmt).total
