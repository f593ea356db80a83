"""A plan as it is told: ledger, pool, verdict, the lines of the log, the command."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kvplan.core.ledger import Ledger, Term
from kvplan.core.model import Model
from kvplan.core.pool import Group, Pool
from kvplan.core.units import GIB, ceil_div, format_bytes
from kvplan.engines.base import Node
from kvplan.engines.chosen import commanded
from kvplan.engines.tensorrt_llm.blocks import WindowPool, blocks_of, first_pass_tokens
from kvplan.engines.tensorrt_llm.cells import Cells
from kvplan.engines.tensorrt_llm.memory import Memory
from kvplan.engines.tensorrt_llm.settings import Settings

Pools = tuple[WindowPool, ...]


def ledger(node: Node, memory: Memory, settings: Settings, states: int, cache: Term) -> Ledger:
    """Every term of one rank; the part of the free memory that no pool takes is left free."""
    weights = memory.weights
    terms = [
        Term(
            name="weights",
            num_bytes=weights.num_bytes,
            source=weights.source,
            error_bytes=weights.error_bytes,
            inside_budget=False,
        ),
        Term(
            name="context",
            num_bytes=memory.context,
            source="estimate from a start-up report",
            error_bytes=memory.context // 2,
            inside_budget=False,
        ),
        *node.others,
        Term(
            name="step_buffers",
            num_bytes=memory.buffers,
            source="the rest of --free-after-load"
            if memory.stated
            else "estimate from six reports",
            error_bytes=0 if memory.stated else memory.buffers,
            inside_budget=False,
        ),
    ]
    if states:
        said = f"{settings.max_batch:,} sequences (--max-batch-size)"
        terms.append(Term(name="recurrent_states", num_bytes=states, source=said))
    left = node.memory_bytes - cache.num_bytes - sum(term.num_bytes for term in terms)
    if left > 0:
        said = f"1 − {settings.fraction:g} of what is free, for graphs and later allocations"
        terms.append(Term(name="left_free", num_bytes=left, source=said, inside_budget=False))
    return Ledger((*terms, cache))


def cache_term(num_bytes: int, memory: Memory, settings: Settings, *, stated: bool) -> Term:
    """The blocks: as stated, or a share of what is free."""
    if stated:
        return Term(name="kv_pool", num_bytes=num_bytes, source="--kv-pool, in whole blocks")
    error = 0 if memory.stated else memory.buffers + memory.weights.error_bytes
    return Term(
        name="kv_pool",
        num_bytes=num_bytes,
        source=f"{settings.fraction:g} of {format_bytes(max(0, memory.free))} free",
        error_bytes=int(error * settings.fraction),
    )


def pool(num_bytes: int, pools: Pools, settings: Settings) -> Pool:
    """The pool of the longest window as its log prints it; every window is a group."""
    last = pools[-1] if pools else WindowPool(settings.max_seq_len, 0, 0, 0, 0)
    return Pool(
        num_bytes=num_bytes,
        block_size=settings.block,
        num_blocks=last.blocks,
        bytes_per_block=settings.block * last.token_bytes,
        kv_tokens=last.tokens,
        max_concurrency=last.tokens / settings.max_seq_len,
        max_model_len=settings.max_seq_len,
        groups=tuple(
            Group(
                kind="full_attention" if each.window >= settings.max_seq_len else "sliding_window",
                layers=each.layers,
                block_size=settings.block,
                page_bytes=settings.block * each.token_bytes,
                blocks_per_sequence=blocks_of(settings.max_seq_len, each, settings),
            )
            for each in pools
        ),
    )


def reason(memory: Memory, settings: Settings, pools: Pools, states: int) -> str | None:
    """Why it does not start, with the arithmetic; None where it does."""
    weights = format_bytes(memory.weights.num_bytes)
    if all(each.blocks for each in pools) and states <= memory.free > 0:
        return None
    if memory.free <= 0:
        return (
            f"Weights of {weights}, {format_bytes(memory.context)} of context and "
            f"{format_bytes(memory.buffers)} of buffers leave nothing of the card. A smaller "
            "--max-batch-size or --max-num-tokens shrinks the buffers; more ranks the weights."
        )
    if states:
        return (
            f"States of {settings.max_batch:,} sequences take {format_bytes(states)} of "
            f"{format_bytes(memory.free)} that are free. Lower --max-batch-size."
        )
    return f"{format_bytes(memory.free)} that are free hold no block of the cache."


def log_lines(pools: Pools, num_bytes: int, settings: Settings) -> Iterator[str]:
    """The lines of start-up; of the PyTorch backend's two passes the last counts."""
    if not pools:
        return
    last = pools[-1]
    if not settings.whole_blocks:
        yield f"Using {last.tokens} tokens in paged KV cache."
        return
    if settings.backend == "pytorch":
        first = first_pass_tokens(settings)
        yield _allocated(first * last.token_bytes, first, settings)
    pages = ceil_div(min(settings.max_seq_len, last.window), settings.block)
    yield f"Number of blocks in KV cache primary pool: {last.blocks}"
    yield f"Max KV cache pages per sequence: {pages}"
    yield _allocated(num_bytes, last.tokens, settings)


def _allocated(num_bytes: int, tokens: int, settings: Settings) -> str:
    # AutoDeploy's manager counts with heads of no width.
    shown = 0 if settings.backend == "_autodeploy" else num_bytes
    return (
        f"[MemUsageChange] Allocated {shown / GIB:.2f} GiB "
        f"for max tokens in paged KV cache ({tokens})."
    )


def warnings(cells: Cells, settings: Settings, model: Model) -> Iterator[str]:
    """What was assumed on the way."""
    if cells.state_layers:
        yield (
            "States of recurrent layers are counted for --max-batch-size sequences: a rule read "
            "in source, not seen in a log."
        )
    if any(layer.window for layer, _ in model.layers()) and len(settings.windows) < 2:
        yield (
            "Layers with a window are kept at full length unless --max-attention-window says "
            "their windows."
        )
    if settings.host_bytes and cells.token:
        tokens = settings.host_bytes // cells.token
        yield f"The host pool holds {tokens:,} tokens that left the card; it starts no requests."


def command(model: Model, settings: Settings, given: Mapping[str, Any]) -> str:
    """The command that starts it so."""
    words = [f"trtllm-serve {model.name}"]
    for flag, (value, source) in commanded(settings.launch, given).items():
        if flag == "--free-after-load" or source not in ("flag", "--gpus"):
            continue
        if source == "--gpus" and value == 1:
            continue
        shown = ",".join(map(str, value)) if isinstance(value, tuple) else value
        words.append(flag if value is True else f"{flag} {shown}")
    return " ".join(words).replace("--tp-size", "--tp_size").replace("--pp-size", "--pp_size")
