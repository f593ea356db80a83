"""What each change buys: the same question asked again with one thing different."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from kvplan.core.errors import KvplanError
from kvplan.core.formats import FORMATS
from kvplan.core.layers import FullAttention, Layer
from kvplan.core.model import Model
from kvplan.core.sharding import divides
from kvplan.core.stack import Stack

if TYPE_CHECKING:
    from kvplan.planning.fit import FitAnswer
    from kvplan.planning.question import Question


@dataclass(frozen=True, slots=True, kw_only=True)
class Lever:
    """One change and the sequences that fit with it; ``factor`` is over those without it."""

    name: str
    change: str
    sequences: int
    factor: float | None
    note: str

    def to_dict(self) -> dict[str, Any]:
        """The contract's lever row."""
        return asdict(self)


def levers(base: FitAnswer) -> list[Lever]:
    """Every lever that applies to the question, each recomputed by the same rules."""
    from kvplan.planning.fit import answer

    found = []
    for name, change, question, note in _changes(base.question):
        try:
            sequences = answer(question).sequences
        except KvplanError:
            continue
        factor = sequences / base.sequences if base.sequences else None
        found.append(Lever(name=name, change=change, sequences=sequences, factor=factor, note=note))
    return found


def _changes(q: Question) -> Iterator[tuple[str, str, Question, str]]:
    if q.fmt.bits_per_element > 8.5:
        fp8 = replace(q, fmt=FORMATS["fp8_e4m3"])
        yield "fp8 KV", "--kv-dtype fp8", fp8, "states that the model fixes in float32 stay"
    if q.context > 1:
        half = replace(q, context=q.context // 2)
        yield "half the context", f"--context {q.context // 2}", half, ""
    if not q.shared_prefix and q.context > 1:
        shared = replace(q, shared_prefix=q.context // 2)
        note = "if all conversations begin with the same tokens and the engine reuses them"
        yield "shared prefix", f"--shared-prefix {q.context // 2}", shared, note
    if divides(q.model, 2 * q.gpus):
        more = replace(q, gpus=2 * q.gpus)
        yield "twice the cards", f"--gpus {2 * q.gpus}", more, _replication(q)
    fewer = _fewer_heads(q.model)
    if fewer is not None:
        note = "needs another checkpoint: the heads are trained"
        yield "half the KV heads", "--set num_key_value_heads", replace(q, model=fewer), note


def _replication(q: Question) -> str:
    heads = [layer.heads for layer, _ in q.model.layers() if layer.heads]
    if heads and min(heads) < 2 * q.gpus:
        return (
            f"{min(heads)} KV heads on {2 * q.gpus} cards: each card keeps a whole one, "
            "so the cache per card no longer shrinks"
        )
    return ""


def _fewer_heads(model: Model) -> Model | None:
    """The model with half the KV heads in each attention that has several, or None."""

    def halved(layer: Layer) -> Layer:
        if isinstance(layer, FullAttention) and layer.kv_heads > 1:
            return replace(layer, kv_heads=layer.kv_heads // 2)
        return layer

    kinds = tuple(tuple(map(halved, block)) for block in model.blocks.kinds)
    if kinds == model.blocks.kinds:
        return None
    return replace(model, blocks=Stack(kinds, model.blocks.order))
