"""transformers: weights, the least activations of a prefill, and a cache a sequence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar, Final

from kvplan.core import weights as w
from kvplan.core.curve import Curve
from kvplan.core.formats import FORMATS
from kvplan.core.ledger import Ledger, Term
from kvplan.core.model import Model
from kvplan.core.pool import Pool
from kvplan.core.sharding import rank_curve
from kvplan.core.units import GIB, format_bytes
from kvplan.engines.base import Asked, Change, Engine, EnginePlan, Node
from kvplan.engines.chosen import Chosen, check_heads
from kvplan.engines.flags import FlagTable
from kvplan.engines.releases import release
from kvplan.engines.transformers.caches import (
    DynamicCache,
    OffloadedCache,
    SequenceCache,
    StaticCache,
    quantised,
)
from kvplan.engines.transformers.flags import FLAGS
from kvplan.engines.transformers.plan import TransformersPlan
from kvplan.engines.weights import Layout, RankWeights, asked_weights

CONTEXT_BYTES: Final = GIB // 2  # a CUDA context with torch's kernels
NEW_TOKENS: Final = 1  # a context is taken as prompt but for one token
TYPES: Final = {"float32": "f32", "float16": "f16", "bfloat16": "bf16"}


class TransformersEngine(Engine):
    """transformers 5: generate() on one card, or on ranks with tp_plan="auto"."""

    name: ClassVar[str] = "transformers"
    how: ClassVar[str] = "generate(): weights, activations and a cache a sequence"
    versions: ClassVar[tuple[str, str]] = ("5.0", "5.24")
    flags: ClassVar[FlagTable] = FLAGS

    def plan(self, model: Model, node: Node, asked: Asked) -> TransformersPlan:
        """What a batch has of one rank.

        Raises:
            BadValue: heads that do not divide, a cache that transformers refuses for this model.
        """
        known = release("transformers", asked.version, *self.versions)
        choose = Chosen(asked.flags)
        tp = choose("--tp-size", node.gpus, "--gpus")
        check_heads(model, tp, "--tp-size")
        cache = _cache(model, tp, choose)
        weights = asked_weights(model, Layout(tp=tp), asked)
        new_tokens = choose("--max-new-tokens", NEW_TOKENS)
        left = node.available_bytes - CONTEXT_BYTES - weights.num_bytes
        room = left if asked.pool_bytes is None else asked.pool_bytes
        starts = left > 0
        return TransformersPlan(
            engine=self.name,
            version=known.text,
            model=model,
            node=node,
            asked=asked,
            launch=choose.launch,
            ledger=_ledger(node, weights, room, stated=asked.pool_bytes is not None),
            pool=_pool(cache.curve, model, room),
            starts=starts,
            reason=None if starts else _nothing_left(weights, node),
            warnings=(*known.warnings, *_warnings(cache, asked)),
            command=_command(choose),
            replicas=max(1, node.gpus // tp),
            cache=cache,
            room=max(0, room),
            new_tokens=new_tokens,
            activation_bytes=activation_bytes(model, tp) if asked.pool_bytes is None else 0,
            weights=weights,
        )

    def changes(self, plan: EnginePlan) -> Iterator[Change]:
        """Other caches, each where transformers has it for the model."""
        asked, given = plan.asked, plan.asked.flags.get("--cache-implementation", "dynamic")

        def other(name: str, note: str, **flags: Any) -> Change:
            said = " ".join(f"--{flag.replace('_', '-')} {value}" for flag, value in flags.items())
            return Change(name, said, plan.model, plan.node, asked.with_flags(**flags), note)

        if given != "quantized":
            note = "read back at every step: slower"
            yield other("4-bit cache", note, cache_implementation="quantized")
            fp8 = {"cache_implementation": "quantized", "cache_backend": "fp8"}
            yield other("fp8 cache", note, **fp8)
        if given != "offloaded":
            note = "the cache crosses the bus at every step: slower"
            yield other("offloaded cache", note, cache_implementation="offloaded")
        twice = replace(plan.node, gpus=2 * plan.node.gpus)
        yield Change("twice the cards", f"--gpus {twice.gpus}", plan.model, twice, asked)


def _cache(model: Model, tp: int, choose: Chosen) -> SequenceCache:
    name = choose("--cache-implementation", "dynamic")
    dtype = choose("--dtype", "auto")
    curve = rank_curve(model, tp, FORMATS[TYPES.get(dtype, "bf16")])
    dynamic = DynamicCache(curve=curve)
    static = StaticCache(curve=curve, max_cache_len=choose("--max-cache-len") or 0)
    if name == "quantized":
        backend = choose("--cache-backend", "quanto")
        bits, group = choose("--nbits") or 4, choose("--q-group-size") or 64
        return quantised(curve, backend, bits, group, choose("--residual-length") or 128)
    if name == "static":
        return static
    if name == "offloaded":
        return OffloadedCache(curve=curve, inner=dynamic, static=False)
    if name == "offloaded_static":
        return OffloadedCache(curve=curve, inner=static, static=True)
    return dynamic


def activation_bytes(model: Model, tp: int) -> int:
    """The least that a token of a prompt needs in one layer: its input, the sum, the widest MLP."""
    hidden = model.hidden_size or 0
    tensors = model.weights.tensors if model.weights else ()
    widest = max((weight.rows for weight in tensors if weight.role == w.MLP_IN), default=0)
    return 2 * (2 * hidden + 2 * widest // tp)


def _ledger(node: Node, weights: RankWeights, room: int, *, stated: bool) -> Ledger:
    return Ledger(
        (
            Term(
                name="weights",
                num_bytes=weights.num_bytes,
                source=weights.source,
                error_bytes=weights.error_bytes,
            ),
            Term(
                name="context",
                num_bytes=CONTEXT_BYTES,
                source="estimate: a CUDA context with torch's kernels",
                error_bytes=CONTEXT_BYTES // 2,
            ),
            *node.others,
            Term(
                name="caches_and_activations",
                num_bytes=room,
                source="--kv-pool" if stated else "what is left",
                error_bytes=0 if stated else CONTEXT_BYTES // 2 + weights.error_bytes,
            ),
        )
    )


def _pool(curve: Curve, model: Model, room: int) -> Pool:
    slope = curve.per_token
    tokens = max(0, room - curve.fixed_bytes) // slope if slope else None
    return Pool(num_bytes=max(0, room), kv_tokens=tokens, max_model_len=model.max_context_tokens)


def _nothing_left(weights: RankWeights, node: Node) -> str:
    return (
        f"The weights take {format_bytes(weights.num_bytes)} and a CUDA context about "
        f"{format_bytes(CONTEXT_BYTES)} of the {format_bytes(node.available_bytes)} that a card "
        "has free: nothing is left for a cache."
    )


def _warnings(cache: SequenceCache, asked: Asked) -> Iterator[str]:
    yield "generate() admits nothing: a batch that does not fit fails on the way."
    host = cache.host(asked.context)
    if host:
        yield (
            f"{format_bytes(host)} of each sequence's {asked.context:,} tokens are in host memory."
        )
    if any(layer.window for layer, _ in cache.curve.layers):
        yield (
            "Right after a prompt a windowed layer of a dynamic cache holds all of it, until the "
            "first token is generated."
        )


def _command(choose: Chosen) -> str:
    given = [
        f"{flag.strip('-').replace('-', '_')}={value!r}"
        for flag, (value, source) in choose.launch.settings.items()
        if source == "flag" and flag not in ("--dtype", "--tp-size")
    ]
    return f"model.generate(**inputs, {', '.join(given)})" if given else "model.generate(**inputs)"
