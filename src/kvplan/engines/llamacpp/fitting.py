"""What ``--fit`` chooses: a shorter context, then experts in host memory, then fewer layers.

common/fit.cpp (b11434), common_params_fit_impl. It measures every choice without allocating; here
the same steps are taken on the layout. Blocks are placed whole: llama.cpp may put part of one more
on a card.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from kvplan.core.model import Model
from kvplan.engines.llamacpp.layout import Layout, Request, lay_out


class Wish(NamedTuple):
    """What is to be left free, and what may be changed."""

    free: int
    target: int
    least_context: int
    context_given: bool
    placement_given: bool

    @property
    def budget(self) -> int:
        """What a card's buffers may take."""
        return self.free - self.target


class Fitted(NamedTuple):
    """The layout, and what was changed for it."""

    layout: Layout
    said: tuple[str, ...] = ()


def fit_request(model: Model, request: Request, wish: Wish) -> Fitted:
    """The layout that the automatic fit ends with; it may still not fit."""
    streams = request.settings.streams
    if not wish.context_given:
        request = request.with_context(request.settings.trained * streams)
    layout = lay_out(request)
    if layout.fits(wish.budget):
        return Fitted(layout)
    said: list[str] = []
    if not wish.context_given:
        request = _shorter(request, layout, wish, streams)
        asked, chosen = layout.request.settings.context, request.settings.context
        if chosen != asked:
            said.append(f"--fit shortens the context from {asked:,} to {chosen:,} cells.")
        layout = lay_out(request)
        if layout.fits(wish.budget):
            return Fitted(layout, tuple(said))
    if wish.placement_given:
        return Fitted(layout, tuple(said))
    layout = _on_host(request, wish)
    depth = request.geometry.layers
    if layout.request.experts:
        said.append(f"--fit keeps the experts of {layout.request.experts} layers in host memory.")
    if layout.placement.host.blocks:
        count = layout.placement.host.blocks
        said.append(f"--fit keeps {count} of {depth} layers, with their caches, in host memory.")
    return Fitted(layout, tuple(said))


def _shorter(request: Request, full: Layout, wish: Wish, streams: int) -> Request:
    """The context by linear interpolation between the least and the whole, as measured."""
    longest = request.settings.context
    least = min(wish.least_context * streams, longest)
    short = request.with_context(least)
    used, used_least = (sum(card.used for card in found.cards) for found in (full, lay_out(short)))
    cards = len(full.cards)
    target = cards * wish.budget
    if cards > 1:
        weights = sum(card.weights for card in full.cards)
        each = weights // max(1, min(request.layers, request.geometry.layers))
        mixture = any(request.buffers.parts.experts)
        target -= (cards + 1) * each // (6 if mixture else 2)
    if target <= used_least or used == used_least:
        return short
    context = least + (longest - least) * (target - used_least) // (used - used_least)
    align = 256 * streams
    return request.with_context(max(min(context, longest) // align * align, least))


def _on_host(request: Request, wish: Wish) -> Layout:
    """The fewest experts, else the fewest layers, that have to stay in host memory."""
    depth = request.geometry.layers
    if any(request.buffers.parts.experts):
        all_experts = replace(request, experts=depth)
        if lay_out(all_experts).fits(wish.budget):
            return _nearest(wish, lambda count: replace(request, experts=count), 0, depth)
        request = all_experts
    return _nearest(wish, lambda count: replace(request, layers=count), depth + 1, 0)


def _nearest(wish: Wish, ask: Callable[[int], Request], best: int, surest: int) -> Layout:
    """The layout of the value nearest to ``best`` that fits, between it and ``surest``."""
    while abs(best - surest) > 1:
        middle = (best + surest) // 2
        if lay_out(ask(middle)).fits(wish.budget):
            surest = middle
        else:
            best = middle
    return lay_out(ask(surest))
