"""No engine: plain arithmetic, memory − weights − allowance, each card with its share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from kvplan.core.curve import Curve
from kvplan.core.formats import FORMATS
from kvplan.core.launch import Launch, Setting
from kvplan.core.layers import FullAttention, Layer
from kvplan.core.ledger import Ledger, Term
from kvplan.core.model import Model
from kvplan.core.pool import Pool
from kvplan.core.sharding import divides, rank_curve
from kvplan.core.stack import Stack
from kvplan.core.units import ceil_div, format_bytes
from kvplan.engines.base import Asked, Capacity, Change, Engine, EnginePlan, Node
from kvplan.engines.chosen import check_heads
from kvplan.engines.demand import Demand, longest_context
from kvplan.engines.flags import Flag, FlagTable, cache_format, size
from kvplan.engines.weights import unknown_weights

FLAGS = FlagTable(
    "none",
    (
        Flag(("--allowance",), size, "Of a card, for all but weights and cache, as 8GiB."),
        Flag(("--kv-dtype", "--kv-cache-dtype"), cache_format, "The cache's format, as fp8."),
    ),
)
NO_ALLOWANCE = (
    "No --allowance: nothing is set aside for activations, the CUDA context and graphs, "
    "which take several GiB in practice."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainPlan(EnginePlan):
    """What is left of each card, and the sequences that fit in it byte for byte."""

    curve: Curve

    def demand(self, context: int) -> Demand:
        """What sequences of so many tokens ask of the pool."""
        return Demand(curve=self.curve, context=context, shared_prefix=self.asked.shared_prefix)

    def capacity(self, context: int) -> Capacity:
        """Whole sequences in the pool."""
        pool = self.pool.num_bytes
        return Capacity(self.demand(context).sequences(pool), "pool" if pool else "weights")

    def longest(self, sequences: int) -> int:
        """The pool shared evenly."""
        limit = self.model.max_context_tokens
        return longest_context(self.curve, self.pool.num_bytes, sequences, limit)

    def sequence_bytes(self, context: int) -> int:
        """What one sequence holds beyond the shared part."""
        return self.demand(context).own_bytes

    def read_bytes(self, context: int, sequences: int) -> int:
        """All that the sequences hold, once."""
        return self.demand(context).resident_bytes(sequences)

    @property
    def weights_read_bytes(self) -> int:
        """A card's share of all tensors; of a mixture the part that one token passes through."""
        share = self.ledger.terms[0].num_bytes
        weights = self.model.weights
        if weights is None or not weights.parameters:
            return share
        return share * weights.active_parameters // weights.parameters

    def explain(self, context: int) -> list[str]:
        """Each kind of layer's formula."""
        return [
            f"  {count} × {layer.kind.replace('_', ' ')}: {layer.formula(self.curve.fmt)}"
            for layer, count in self.model.layers()
        ]


class PlainEngine(Engine):
    """Total − weights − allowance; nothing rounded, nothing reserved."""

    name: ClassVar[str] = "none"
    how: ClassVar[str] = "plain arithmetic: memory − weights − allowance"
    versions: ClassVar[tuple[str, str]] = ("", "")
    flags: ClassVar[FlagTable] = FLAGS

    def plan(self, model: Model, node: Node, asked: Asked) -> PlainPlan:
        """The ledger of one card of ``gpus`` that share the model.

        Raises:
            BadValue: query heads that do not divide over the cards, or weights that are unknown.
        """
        check_heads(model, node.gpus, "--gpus", "cards")
        weights, weights_source = _weights(model, asked)
        allowance = asked.flags.get("--allowance", 0)
        fmt = asked.flags.get("--kv-dtype", FORMATS["bf16"])
        share = ceil_div(weights, node.gpus)
        left = node.available_bytes - share - allowance
        if node.gpus > 1:
            weights_source = f"{weights_source}, split evenly over {node.gpus} cards"
        given = "flag" if "--allowance" in asked.flags else "default: nothing"
        ledger = Ledger(
            (
                Term(name="weights", num_bytes=share, source=weights_source),
                Term(name="allowance", num_bytes=allowance, source=given),
                *node.others,
                _pool_term(left, asked),
            )
        )
        pool_bytes = max(0, ledger.pool_bytes)
        curve = rank_curve(model, node.gpus, fmt)
        return PlainPlan(
            engine=self.name,
            version=None,
            model=model,
            node=node,
            asked=asked,
            launch=_launch(node, asked, allowance, given, fmt.name),
            ledger=ledger,
            pool=Pool(
                num_bytes=pool_bytes,
                kv_tokens=_tokens(curve, pool_bytes),
                max_model_len=model.max_context_tokens,
            ),
            starts=pool_bytes > 0,
            reason=None if pool_bytes > 0 else _nothing_left(share, allowance, node),
            warnings=() if "--allowance" in asked.flags or asked.pool_bytes else (NO_ALLOWANCE,),
            curve=curve,
        )

    def changes(self, plan: EnginePlan) -> Iterator[Change]:
        """Format, length, sharing, cards, heads."""
        model, node, asked = plan.model, plan.node, plan.asked
        fmt = asked.flags.get("--kv-dtype", FORMATS["bf16"])
        if fmt.bits_per_element > 8.5:
            fp8 = asked.with_flags(kv_dtype=FORMATS["fp8_e4m3"])
            note = "states that the model fixes in float32 stay"
            yield Change("fp8 KV", "--kv-dtype fp8", model, node, fp8, note)
        half = asked.context // 2
        if half:
            shorter = replace(asked, context=half)
            yield Change("half the context", f"--context {half}", model, node, shorter)
        if half and not asked.shared_prefix:
            shared = replace(asked, shared_prefix=half)
            note = "if all conversations begin with the same tokens and the engine reuses them"
            yield Change("shared prefix", f"--shared-prefix {half}", model, node, shared, note)
        twice = 2 * node.gpus
        if divides(model, twice):
            more = replace(node, gpus=twice)
            note = _replication(model, twice)
            yield Change("twice the cards", f"--gpus {twice}", model, more, asked, note)
        fewer = _fewer_heads(model)
        if fewer is not None:
            note = "needs another checkpoint: the heads are trained"
            flag = "--set num_key_value_heads"
            yield Change("half the KV heads", flag, fewer, node, asked, note)


def _weights(model: Model, asked: Asked) -> tuple[int, str]:
    if asked.weights_bytes is not None:
        return asked.weights_bytes, "--weights-bytes"
    if model.weights is None:
        raise unknown_weights(model)
    return model.weights.num_bytes, model.weights.source


def _pool_term(left: int, asked: Asked) -> Term:
    if asked.pool_bytes is not None:
        return Term(name="kv_pool", num_bytes=asked.pool_bytes, source="--kv-pool")
    return Term(name="kv_pool", num_bytes=left, source="what is left")


def _nothing_left(share: int, allowance: int, node: Node) -> str:
    memory = format_bytes(node.available_bytes)
    whose = "a card's" if node.free_bytes is None else "the free"
    if share > node.available_bytes:
        return f"The weights take {format_bytes(share)} of {whose} {memory}."
    return (
        f"Weights and allowance take {format_bytes(share + allowance)} of {whose} {memory}: "
        "nothing is left for the cache."
    )


def _tokens(curve: Curve, pool_bytes: int) -> int | None:
    """Tokens of one sequence that fill the pool, where a token has one cost."""
    slope = curve.per_token
    return max(0, pool_bytes - curve.fixed_bytes) // slope if slope else None


def _launch(node: Node, asked: Asked, allowance: int, given: str, fmt: str) -> Launch:
    kv = "flag" if "--kv-dtype" in asked.flags else "default"
    return Launch(
        {
            "--gpus": Setting(node.gpus, "flag" if node.gpus > 1 else "default"),
            "--allowance": Setting(allowance, given),
            "--kv-dtype": Setting(fmt, kv),
        }
    )


def _replication(model: Model, gpus: int) -> str:
    heads = [layer.heads for layer, _ in model.layers() if layer.heads]
    if not heads or min(heads) >= gpus:
        return ""
    return (
        f"{min(heads)} KV heads on {gpus} cards: each card keeps a whole one, "
        "so the cache per card no longer shrinks"
    )


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
