"""A plan as it is told: the ledger of the fullest card, the pool, the verdict, the command."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kvplan.core.ledger import Ledger, Term
from kvplan.core.pool import Group
from kvplan.core.units import ceil_div, format_bytes
from kvplan.engines.base import Asked, Node
from kvplan.engines.chosen import GIVEN, Chosen
from kvplan.engines.llamacpp.caches import ATTENTION, DRAFT, RECURRENT, WINDOW
from kvplan.engines.llamacpp.compute import CARD_CONTEXT, CARD_CONTEXT_ERROR
from kvplan.engines.llamacpp.flags import ALL, AUTO
from kvplan.engines.llamacpp.layout import Card, Layout
from kvplan.engines.llamacpp.nearest import context_that_fits, layers_that_fit
from kvplan.engines.llamacpp.plan import CellPool

KINDS: Final = {ATTENTION: "full_attention", WINDOW: "sliding_window", RECURRENT: "recurrent_state"}


def ledger(layout: Layout, node: Node, asked: Asked, host_cache: int) -> Ledger:
    """The fullest card's terms, the host's between them, its caches last."""
    card = layout.fullest
    terms = [*_card_terms(layout, card), *node.others, *_host_terms(layout, host_cache)]
    cache = Term(name="kv_pool", num_bytes=card.cache, source=_cells_said(layout))
    if asked.pool_bytes is not None:
        cache = Term(name="kv_pool", num_bytes=asked.pool_bytes, source="--kv-pool")
    left = node.available_bytes - card.total
    if left > 0 and asked.pool_bytes is None:
        source = "what is not asked for"
        terms.append(Term(name="left_free", num_bytes=left, source=source, inside_budget=False))
    return Ledger((*terms, cache))


def _card_terms(layout: Layout, card: Card) -> Iterator[Term]:
    buffers = layout.request.buffers
    depth = layout.request.geometry.layers
    held = f"{card.part.blocks} of {depth} layers" + (", the output" if card.part.output else "")
    yield Term(
        name="weights",
        num_bytes=card.weights,
        source=f"{held}: {buffers.source}",
        error_bytes=round(card.weights * buffers.error),
    )
    yield Term(
        name="context",
        num_bytes=CARD_CONTEXT,
        source="estimate: a CUDA context with ggml's kernels",
        error_bytes=CARD_CONTEXT_ERROR,
    )
    yield Term(
        name="compute_buffer",
        num_bytes=card.compute.num_bytes,
        source=f"estimate: the graph of {layout.request.settings.ubatch} tokens",
        error_bytes=card.compute.error,
    )


def _host_terms(layout: Layout, host_cache: int) -> Iterator[Term]:
    host, buffers = layout.host, layout.request.buffers
    error = round(host.weights * buffers.error)
    rows = (
        ("host_weights", host.weights, "the embedding, and what is not on a card", error),
        ("host_kv_pool", host.cache, "caches of the layers in host memory", 0),
        ("host_compute_buffer", host.compute.num_bytes, "embeddings and masks", host.compute.error),
        ("host_output_buffer", host.output, "logits of one token a slot", 0),
        ("host_prompt_cache", host_cache, "at most, --cache-ram", host_cache),
    )
    for name, num_bytes, source, off in rows:
        if num_bytes:
            yield Term(
                name=name,
                num_bytes=num_bytes,
                source=source,
                error_bytes=off,
                inside_budget=False,
                on_host=True,
            )


def _cells_said(layout: Layout) -> str:
    settings = layout.request.settings
    streams = f" × {settings.streams} streams" if settings.streams > 1 else ""
    return f"{settings.cells:,} cells{streams}, K {settings.k.name}, V {settings.v.name}"


def cell_pool(layout: Layout, asked: Asked) -> CellPool:
    """The caches' figures."""
    settings, found = layout.request.settings, layout.caches.announced()
    states = [cache for cache in found if cache.name == RECURRENT]
    attention = [cache for cache in found if cache.name not in (RECURRENT, DRAFT)]
    window = next((cache.cells for cache in found if cache.name == WINDOW), None)
    card = layout.fullest.cache
    return CellPool(
        num_bytes=card if asked.pool_bytes is None else asked.pool_bytes,
        kv_tokens=settings.cells * settings.streams,
        max_model_len=settings.slot_context,
        groups=tuple(
            Group(
                kind=KINDS.get(cache.name, cache.name),
                layers=cache.layers,
                block_size=1,
                page_bytes=ceil_div(cache.num_bytes, max(1, cache.cells * cache.streams)),
                blocks_per_sequence=1 if cache.name == RECURRENT else cache.cells,
            )
            for cache in found
        ),
        kv_cells=settings.cells,
        kv_streams=settings.streams,
        slots=settings.slots,
        slot_context=settings.slot_context,
        window_cells=window,
        k_bytes=sum(cache.k_bytes for cache in attention),
        v_bytes=sum(cache.v_bytes for cache in attention),
        recurrent_r_bytes=sum(cache.k_bytes for cache in states),
        recurrent_s_bytes=sum(cache.v_bytes for cache in states),
        recurrent_state_bytes=sum(cache.num_bytes for cache in states),
    )


def room_needed(layout: Layout, node: Node) -> int:
    """What of the card's memory is taken: where it is all that the system has, the host's too.

    A Mac's GPU is given a part of its memory, and the host has the rest.
    """
    shared = node.device.unified_memory and node.device.vendor != "Apple"
    return layout.fullest.total + (_host_bytes(layout) if shared else 0)


def _host_bytes(layout: Layout) -> int:
    host = layout.host
    return host.weights + host.cache + host.compute.num_bytes + host.output


def refusal(layout: Layout, node: Node) -> str:
    """Why it does not start, and the nearest values that do."""
    card = layout.fullest
    if card.total <= node.available_bytes:
        return (
            f"{node.device.title} has one memory of {format_bytes(node.available_bytes)} for "
            f"itself and the host: {format_bytes(card.total)} for the GPU and "
            f"{format_bytes(_host_bytes(layout))} for the host are more."
        )
    said = (
        f"A card needs {format_bytes(card.total)} and has {format_bytes(node.available_bytes)}: "
        f"weights {format_bytes(card.weights)}, caches {format_bytes(card.cache)}, graph about "
        f"{format_bytes(card.compute.num_bytes)}, context about {format_bytes(CARD_CONTEXT)}."
    )
    context, layers = context_that_fits(layout, node), layers_that_fit(layout, node)
    works = [f"--ctx-size {context}"] if context else []
    if layers:
        works.append(f"--n-gpu-layers {layers}")
    return f"{said} The nearest that starts: {' or '.join(works)}." if works else said


def command(choose: Chosen, layout: Layout) -> str:
    """The command line that starts it so."""
    words = ["llama-server", "-m", "MODEL.gguf"]
    for flag, (value, source) in choose.launch.settings.items():
        if source == GIVEN and flag not in ("--quantization",):
            words += [flag, *_words(value)]
    if "--ctx-size" not in choose.given:
        words += ["--ctx-size", str(layout.request.settings.context)]
    return " ".join(words)


def _words(value: object) -> list[str]:
    if value is True:
        return []
    if value == AUTO:
        return ["-1"]
    if value == ALL:
        return ["all"]
    if isinstance(value, tuple):
        return [",".join(f"{share:g}" for share in value)]
    return [str(getattr(value, "name", value))]
