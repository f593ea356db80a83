"""A plan as it is told: the ledger, the pool's figures, the verdict, warnings, the command."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kvplan.core.ledger import Ledger, Term
from kvplan.core.model import Model
from kvplan.core.pool import Group, Pool
from kvplan.core.units import ceil_div, format_bytes
from kvplan.engines.base import Node
from kvplan.engines.chosen import commanded
from kvplan.engines.experts import NOT_COUNTED
from kvplan.engines.releases import Release
from kvplan.engines.sglang.cells import Cells
from kvplan.engines.sglang.memory import CONTEXT_ERROR, Memory
from kvplan.engines.sglang.pools import Pools, allocated
from kvplan.engines.sglang.requests import Running
from kvplan.engines.sglang.settings import Settings

# Ours, for what a log or a draft's config says.
OWN: Final = (
    "--draft-layers", "--draft-kv-heads", "--draft-head-dim", "--free-before-load",
    "--free-after-load",
)  # fmt: skip


def ledger(
    node: Node, memory: Memory, cells: Cells, settings: Settings, pools: Pools, caches: Term
) -> Ledger:
    """Every term of one rank; what no pool takes is left free."""
    terms = list(_terms(node, memory, cells, settings, pools))
    left = node.memory_bytes - caches.num_bytes - sum(term.num_bytes for term in terms)
    if left > 0:
        said = "rounding, caps and what is not asked for"
        terms.append(Term(name="left_free", num_bytes=left, source=said, inside_budget=False))
    return Ledger((*terms, caches))


def _terms(
    node: Node, memory: Memory, cells: Cells, settings: Settings, pools: Pools
) -> Iterator[Term]:
    weights, draft = memory.weights, draft_bytes(cells, settings, pools)
    slack = int(memory.slack(settings)) - (0 if settings.draft_counted else draft)
    yield Term(
        name="weights",
        num_bytes=weights.num_bytes,
        source=weights.source,
        error_bytes=weights.error_bytes,
    )
    yield Term(
        name="context_and_communication",
        num_bytes=max(0, node.available_bytes - memory.before),
        source="--free-before-load" if memory.stated else "estimate from two logs",
        error_bytes=0 if memory.stated else CONTEXT_ERROR,
        inside_budget=False,
    )
    yield from node.others
    yield Term(
        name="activations_and_graphs",
        num_bytes=max(0, slack),
        source=f"1 − {settings.fraction:g} of what was free before loading",
        inside_budget=False,
    )
    if pools.slots:
        yield Term(
            name="recurrent_states",
            num_bytes=(pools.slots + 1) * cells.slot,
            source=f"({pools.slots:,} + 1) slots × {cells.slot:,} B",
        )
    if draft:
        said = "as many tokens as the target"
        yield Term(
            name="draft_cache",
            num_bytes=draft,
            source=said if settings.draft_counted else f"{said}; this release does not budget it",
            inside_budget=settings.draft_counted,
        )


def draft_bytes(cells: Cells, settings: Settings, pools: Pools) -> int:
    """The draft's cache on one rank."""
    return allocated(cells.draft, pools.max_total_tokens, settings).printed


def cache_term(caches: int, memory: Memory, *, stated: bool) -> Term:
    """The caches of tokens: a log's figure, or what the fraction leaves."""
    if stated:
        return Term(name="kv_pool", num_bytes=caches, source="--kv-pool")
    error = memory.weights.error_bytes + (0 if memory.stated else CONTEXT_ERROR)
    said = "what the fraction leaves"
    return Term(name="kv_pool", num_bytes=caches, source=said, error_bytes=error)


def pool(caches: int, pools: Pools, cells: Cells, settings: Settings) -> Pool:
    """The figures that SGLang prints, and its pools."""
    page = settings.page
    return Pool(
        num_bytes=caches,
        block_size=page,
        num_blocks=pools.max_total_tokens // page,
        bytes_per_block=page * (cells.full.printed or cells.window.printed),
        kv_tokens=pools.max_total_tokens,
        max_concurrency=pools.max_total_tokens / settings.context,
        max_model_len=settings.context,
        groups=tuple(_groups(cells, settings)),
    )


def _groups(cells: Cells, settings: Settings) -> Iterator[Group]:
    page, context = settings.page, settings.context
    if cells.full_layers:
        yield Group(
            kind="latent_attention" if cells.latent else "full_attention",
            layers=cells.full_layers,
            block_size=page,
            page_bytes=page * cells.full.printed,
            blocks_per_sequence=ceil_div(context, page),
        )
    if cells.window_layers:
        yield Group(
            kind="sliding_window",
            layers=cells.window_layers,
            block_size=page,
            page_bytes=page * cells.window.printed,
            blocks_per_sequence=ceil_div(min(context, cells.window_tokens + page), page),
        )
    if cells.state_layers:
        yield Group(
            kind="recurrent_state",
            layers=cells.state_layers,
            block_size=context,
            page_bytes=cells.slot,
            blocks_per_sequence=settings.slots_a_request,
        )


def reason(
    memory: Memory, cells: Cells, settings: Settings, pools: Pools, running: Running
) -> str | None:
    """Why it does not start, with the arithmetic; None where it does."""
    if pools.max_total_tokens > 0 and running.requests > 0:
        return _draft_reason(memory, cells, settings, pools)
    before, weights = format_bytes(memory.before), format_bytes(memory.weights.num_bytes)
    if pools.max_total_tokens > 0:
        return (
            f"{pools.slots:,} slots of states hold no request: each takes "
            f"{settings.slots_a_request}. Raise --mamba-full-memory-ratio or "
            "--max-mamba-cache-size."
        )
    if memory.after <= 0:
        ranks = settings.tp * settings.pp
        cards = ceil_div(memory.weights.num_bytes * ranks, max(1, memory.before))
        return (
            f"The weights take {weights} of a card on which {before} are free; it takes more than "
            f"{cards} such cards to hold them."
        )
    least = math.ceil(1000 * (1 - memory.after / memory.before)) / 1000
    return (
        f"Of {before} that are free before loading, {format_bytes(memory.after)} are left after "
        f"{weights} of weights. --mem-fraction-static {settings.fraction:g} keeps "
        f"{format_bytes(int(memory.slack(settings)))} of them for activations and graphs, so "
        f"nothing is left for the cache. Raise it above {least:.3f}."
    )


def _draft_reason(memory: Memory, cells: Cells, settings: Settings, pools: Pools) -> str | None:
    """A draft that the budget leaves out has to fit into what the fraction leaves."""
    draft, slack = draft_bytes(cells, settings, pools), int(memory.slack(settings))
    if settings.draft_counted or draft <= slack:
        return None
    return (
        f"The draft's cache takes {format_bytes(draft)}, which this release does not budget, and "
        f"--mem-fraction-static {settings.fraction:g} leaves {format_bytes(slack)} beside the "
        "pools. Lower it, or cap --max-total-tokens."
    )


def warnings(
    known: Release, model: Model, node: Node, memory: Memory, settings: Settings, cells: Cells
) -> tuple[str, ...]:
    """What was assumed on the way."""
    found = list(known.warnings)
    if cells.compressed:
        found.append("DeepSeek V4's pools are counted by the rule of SGLang 0.5.12.")
    if any(layer.window for layer, _ in model.layers()) and not settings.pooled_windows:
        found.append("SGLang keeps full length in the windowed layers of this model.")
    if settings.speculative and settings.draft_layers and not model.traits.draft_layers:
        found.append(
            f"The draft is taken to have {settings.draft_layers} of the target's attention layers; "
            "its config says how many (--draft-layers)."
        )
    if settings.eplb:
        found.append(NOT_COUNTED)
    return tuple(found)


def command(model: Model, settings: Settings, given: Mapping[str, Any]) -> str:
    """The command that starts it so."""
    words = ["python -m sglang.launch_server", f"--model-path {model.name}"]
    for flag, (value, source) in commanded(settings.launch, given).items():
        if flag in OWN:
            continue
        if source not in ("flag", "--gpus") or (source == "--gpus" and value == 1):
            continue
        words.append(flag if value is True else f"{flag} {value}")
    return " ".join(words)
