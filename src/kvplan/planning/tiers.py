"""Loading a prefix from a tier beside computing it again: two bounds, and where they meet.

    load       ≥  bytes of the prefix on one rank ÷ the link's rate
    recompute  ≥  (2 × active parameters × tokens + attention) ÷ (ranks × the device's dense peak)
    attention  =  2 × query heads × (key + value width) × pairs of tokens that see each other

No engine computes faster than the peak, so a link that carries more than ``break_even_bytes_per_s``
is the faster way for certain; one that carries less may still be, as prefills reach a part of the
peak alone. Left out of the operations, so that the bound holds: embedding and output tables (one
position needs logits), encoders, states, indexers, and layers that see compressed tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from kvplan.core import weights as w
from kvplan.core.device import Device
from kvplan.core.layers import FullAttention, Layer
from kvplan.core.model import Model
from kvplan.core.quantisation import Quantised
from kvplan.core.tier import Tier
from kvplan.core.units import MAX_TOKENS
from kvplan.core.weights import count_parameters
from kvplan.engines.base import EnginePlan
from kvplan.readers.host_links import HostLink

OUTSIDE: Final = frozenset(
    {w.EMBEDDING, w.HEAD, w.POSITION, w.TOWER, w.PROJECTOR, w.ENCODER, w.CODEC}
)
# What a scheme can be multiplied in, the fastest first; anything else is in 16 bits.
FAST_TYPES: Final = {"fp8": ("fp8",), "nvfp4": ("fp4", "fp8"), "mxfp4": ("fp4", "fp8")}
SIXTEEN_BITS: Final = ("bf16", "fp16")


@dataclass(frozen=True, slots=True, kw_only=True)
class Loading:
    """Both bounds for a prefix of ``tokens``; ``break_even_tokens`` is the shortest prefix that the
    link loads sooner than it could be computed, None where there is none.
    """

    tokens: int
    rank_bytes: int
    link_bytes_per_s: int
    link_source: str
    load_s: float
    recompute_flops: int
    peak_flops_per_s: int
    peak_source: str
    recompute_s: float
    break_even_bytes_per_s: int | None
    break_even_tokens: int | None

    def to_dict(self) -> dict[str, Any]:
        """The JSON of it."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class TierAnswer:
    """A tier, the prefixes of the asked length that it keeps, and the bounds of loading one."""

    tier: Tier
    sequences: int
    loading: Loading | None

    def to_dict(self) -> dict[str, Any]:
        """A row of the JSON's ``tiers``."""
        return self.tier.to_dict() | {
            "sequences": self.sequences,
            "loading": self.loading.to_dict() if self.loading else None,
        }


class Peak(NamedTuple):
    """Operations a second of all ranks together, and of which type."""

    flops_per_s: int
    source: str


def tiers_of(plan: EnginePlan, link: HostLink | None) -> list[TierAnswer]:
    """The tiers of a plan at the context that is asked for."""
    context = plan.asked.context
    return [
        TierAnswer(tier, tier.sequences(context), loading(tier, plan, link, context))
        for tier in plan.tiers
    ]


def loading(tier: Tier, plan: EnginePlan, link: HostLink | None, tokens: int) -> Loading | None:
    """The bounds of one tier; None where link or peak are not known."""
    peak = peak_of(plan.model, plan.node.device, tier.ranks)
    if link is None or peak is None or plan.model.weights is None:
        return None
    flops = prefill_flops(plan.model, tokens)
    recompute = flops / peak.flops_per_s
    moved = tier.load_bytes(tokens)
    longest = min(plan.model.max_context_tokens or MAX_TOKENS, MAX_TOKENS)

    def loads_sooner(length: int) -> bool:
        return tier.load_bytes(length) * peak.flops_per_s <= (
            prefill_flops(plan.model, length) * link.bytes_per_s
        )

    return Loading(
        tokens=tokens,
        rank_bytes=moved,
        link_bytes_per_s=link.bytes_per_s,
        link_source=link.source,
        load_s=moved / link.bytes_per_s,
        recompute_flops=flops,
        peak_flops_per_s=peak.flops_per_s,
        peak_source=peak.source,
        recompute_s=recompute,
        break_even_bytes_per_s=int(moved / recompute) if recompute else None,
        break_even_tokens=_shortest(loads_sooner, tier.block_tokens, longest),
    )


def _shortest(holds: Callable[[int], bool], step: int, longest: int) -> int | None:
    """The least multiple of ``step`` from which on it holds.

    A prefix's bytes grow with its length and its operations with more than that: once loading is
    the sooner it stays so.
    """
    low, high = 1, longest // step
    if high < 1 or not holds(high * step):
        return None
    while low < high:
        middle = (low + high) // 2
        if holds(middle * step):
            high = middle
        else:
            low = middle + 1
    return low * step


def peak_of(model: Model, device: Device, ranks: int) -> Peak | None:
    """The vendor's dense peak for the type that the weights are multiplied in."""
    storage = model.weights.storage if model.weights else None
    method = storage.method if isinstance(storage, Quantised) else ""
    types = next((fast for word, fast in FAST_TYPES.items() if word in method), ())
    for kind in (*types, *SIXTEEN_BITS):
        peak = device.dense_flops.get(kind)
        if peak:
            return Peak(peak * ranks, f"{ranks} × {peak / 1e12:,.0f} TFLOPS dense {kind}")
    return None


def prefill_flops(model: Model, tokens: int) -> int:
    """The least operations that a prefix of so many tokens takes."""
    tensors = model.weights.tensors if model.weights else ()
    active = count_parameters(tuple(t for t in tensors if t.role not in OUTSIDE))[1]
    attention = sum(
        _attention_flops(layer, tokens, model.traits.index_topk) * count
        for layer, count in model.layers()
    )
    return 2 * active * tokens + attention


def _attention_flops(layer: Layer, tokens: int, picked: int) -> int:
    """Scores and sums of one layer, each token over what it sees."""
    heads = layer.multi_head()
    if not isinstance(heads, FullAttention):
        return 0
    sees = min(x for x in (layer.window, picked, tokens) if x)
    pairs = sees * (sees + 1) // 2 + (tokens - sees) * sees
    return 2 * heads.kv_heads * (heads.key_dim + heads.value_dim) * pairs
