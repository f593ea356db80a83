"""The nearest values with which a start fits that does not: one change each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from kvplan.engines.base import Node
from kvplan.engines.llamacpp.compute import CARD_CONTEXT
from kvplan.engines.llamacpp.layout import Layout, lay_out

CELLS = 256  # contexts are rounded up to so many


def context_that_fits(layout: Layout, node: Node) -> int:
    """The most cells of all streams; 0 where none fit."""
    request = layout.request
    step = CELLS * request.settings.streams
    most = _most(
        request.settings.context // step,
        lambda steps: _fits(lay_out(request.with_context(steps * step)), node),
    )
    return most * step


def layers_that_fit(layout: Layout, node: Node) -> int:
    """The most layers on the cards; 0 where none fit."""
    request = layout.request
    return _most(
        min(request.layers, request.geometry.layers + 1),
        lambda layers: _fits(lay_out(replace(request, layers=layers)), node),
    )


def _fits(layout: Layout, node: Node) -> bool:
    return layout.fits(node.available_bytes - CARD_CONTEXT)


def _most(below: int, fits: Callable[[int], bool]) -> int:
    """The largest number below a bound that fits, by halving."""
    low, high = 0, below
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
