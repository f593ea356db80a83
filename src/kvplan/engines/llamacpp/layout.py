"""A start laid out: the bytes of weights, caches and graph on every card and in host memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from kvplan.core.model import Model
from kvplan.engines.llamacpp.buffers import Buffers
from kvplan.engines.llamacpp.caches import Caches, caches_of
from kvplan.engines.llamacpp.compute import (
    CARD_CONTEXT,
    MATRICES,
    Estimate,
    Shape,
    card_bytes,
    host_bytes,
    output_bytes,
    shape_of,
)
from kvplan.engines.llamacpp.geometry import Geometry
from kvplan.engines.llamacpp.placement import Placement, Slice, place
from kvplan.engines.llamacpp.settings import Settings

EXPERT_MATRICES: Final = 3  # gate, up and down, each of all experts


class Card(NamedTuple):
    """What one card holds."""

    part: Slice
    weights: int
    cache: int
    compute: Estimate

    @property
    def used(self) -> int:
        """Buffers, without the driver's context."""
        return self.weights + self.cache + self.compute.num_bytes

    @property
    def total(self) -> int:
        """With the context."""
        return self.used + CARD_CONTEXT


class Host(NamedTuple):
    """What host memory holds."""

    weights: int
    cache: int
    compute: Estimate
    output: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is laid out: a model's parts, and where they are asked to be.

    ``experts`` are the first layers whose experts stay in host memory; ``rows`` cuts every block
    over all cards instead of dealing out whole ones.
    """

    geometry: Geometry
    settings: Settings
    buffers: Buffers
    shape: Shape
    shares: tuple[float, ...]
    layers: int
    experts: int = 0
    mode: str = "layer"

    def with_context(self, context: int) -> Request:
        """The same with another context."""
        settings = self.settings
        batch = min(settings.batch, context)
        ubatch = min(settings.ubatch, batch)
        changed = replace(settings, context=context, batch=batch, ubatch=ubatch)
        return replace(self, settings=changed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The answer to a request."""

    request: Request
    caches: Caches
    placement: Placement
    cards: tuple[Card, ...]
    host: Host

    @property
    def fullest(self) -> Card:
        """The card with the most on it."""
        return max(self.cards, key=lambda card: card.used)

    def on_host_alone(self) -> Estimate:
        """The graph where no card is used: all of it in one buffer of the host."""
        return card_bytes(self.request.shape, self.caches, output=True)

    def fits(self, free: int) -> bool:
        """Whether every card's buffers are within what it has free."""
        return all(card.used <= free for card in self.cards)


def request_shape(model: Model) -> Shape:
    """The widths that the graph depends on."""
    return shape_of(model)


def lay_out(request: Request) -> Layout:
    """Place a request.

    Raises:
        BadValue: a cache type whose blocks do not divide a row.
    """
    settings, buffers = request.settings, request.buffers
    caches = caches_of(request.geometry, settings)
    depth = request.geometry.layers
    placement = place(
        depth, request.layers, request.shares, output_is_layer=settings.rules.output_is_layer
    )
    on_host = range(min(request.experts, depth))
    cut = request.mode in ("row", "tensor", "graph")
    cards = tuple(_card(request, caches, part, on_host, placement.host) for part in placement.cards)
    if cut:
        cards = _evened(cards, request)
    held = sum(card.weights for card in cards)
    cached = sum(card.cache for card in cards)
    output_on_host = placement.host.output
    return Layout(
        request=request,
        caches=caches,
        placement=placement,
        cards=cards,
        host=Host(
            buffers.total - held + (0 if output_on_host else _copy(buffers)),
            caches.num_bytes - cached,
            host_bytes(request.shape, caches),
            output_bytes(request.shape, settings),
        ),
    )


def _card(request: Request, caches: Caches, part: Slice, on_host: range, host: Slice) -> Card:
    settings, buffers = request.settings, request.buffers
    weights = buffers.held(part, on_host)
    cache = caches.between(part.first, part.end) if settings.offload_cache else 0
    if not part.blocks and not part.output:
        return Card(part, weights, cache, Estimate(0, 0))
    copied = _copied(request, on_host, host)
    compute = card_bytes(request.shape, caches, output=part.output, copied=copied)
    return Card(part, weights, cache, compute)


def _copied(request: Request, experts: range, host: Slice) -> int:
    """The largest weights of host memory, which a batch of 32 and more is computed with on a card.

    ggml-cuda, offload_op (b11434): the output where it is in host memory, else a block's matrix.
    """
    parts = request.buffers.parts
    largest = request.buffers.output if host.output else 0
    if host.blocks:
        largest = max(largest, max(parts.blocks[: host.end]) // MATRICES)
    if experts:
        largest = max(largest, max(parts.experts[experts.start : experts.stop]) // EXPERT_MATRICES)
    return largest


def _copy(buffers: Buffers) -> int:
    """A tied embedding is copied beside the output layer."""
    return buffers.parts.embedding * buffers.tied


def _evened(cards: tuple[Card, ...], request: Request) -> tuple[Card, ...]:
    """Rows over all cards: weights everywhere; caches too where tensors are cut, else on the main.

    src/llama-model.cpp (b11434): --split-mode row keeps caches and small tensors on one card.
    """
    whole = sum(request.shares)
    weights, cache = sum(card.weights for card in cards), sum(card.cache for card in cards)
    main = max(range(len(cards)), key=lambda card: request.shares[card])
    found = []
    for place_, (card, share) in enumerate(zip(cards, request.shares, strict=True)):
        held = round(cache * share / whole)
        if request.mode == "row":
            held = cache if place_ == main else 0
        found.append(card._replace(weights=round(weights * share / whole), cache=held))
    return tuple(found)
