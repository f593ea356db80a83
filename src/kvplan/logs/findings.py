"""What a start's facts mean: why it failed, what a figure is not, what contradicts what."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from kvplan.core.units import GIB, format_bytes, format_gib
from kvplan.logs import causes
from kvplan.logs.facts import Start
from kvplan.logs.infer import divided, usable_tokens
from kvplan.logs.pool import pool_of

Severity = Literal["error", "warning", "note"]

MUCH_WASTE = 0.05  # of the pool, by padding
RANKS_APART = GIB // 4
GRAPHS_APART = GIB // 2
ESTIMATE = "cuda_graph_estimate_bytes"
OTHERS_HOLD = 2 * GIB  # less is a context of the process itself
# Graphs took 0.1 to 4 GiB in every report of a measured size; an estimate of a tenth of the card is
# the estimator's extrapolation.
MOST_GRAPHS_SHARE = 0.1
MOST_GRAPHS = 16 * GIB


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to know, with its arithmetic."""

    code: str
    severity: Severity
    message: str
    numbers: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The contract's row of ``findings``."""
        return asdict(self)


def find(start: Start) -> list[Finding]:
    """Everything that facts alone tell, the gravest first."""
    found = [finding for check in CHECKS for finding in check(start)]
    return sorted(found, key=lambda f: ("error", "warning", "note").index(f.severity))


def _divided(start: Start) -> Iterator[Finding]:
    pool = pool_of(start)
    ratio = divided(pool)
    if ratio is None or pool.length is None or start.failures:
        return
    usable = usable_tokens(pool) or 0
    numbers = {"printed_tokens": pool.tokens, "usable_tokens": usable, "ratio": round(ratio, 3)}
    yield Finding(
        "tokens_not_concurrency",
        "warning",
        f"{pool.tokens:,} tokens is not what fits: it is the blocks divided by the groups of "
        f"layers, times a block. {pool.concurrency:g} × {pool.length:,} = {usable:,} tokens fit at "
        "that length; take the concurrency.",
        numbers,
    )


def _hybrid(start: Start) -> Iterator[Finding]:
    if start.number("hybrid_manager_disabled"):
        yield Finding(
            "hybrid_manager_disabled",
            "warning",
            "Every layer is given blocks for every token, those of a sliding window too: the "
            "hybrid KV cache manager is off.",
        )
    block = start.last("attention_block_size")
    if block is not None:
        yield Finding(
            "large_attention_block",
            "note",
            f"A block of attention is {block.value:,} tokens, as large as a recurrent state: each "
            "request holds whole blocks of every group of layers however short it is.",
            {"attention_block_size": block.value},
        )


def _padding(start: Start) -> Iterator[Finding]:
    layers = start.last("padding_layers")
    share = start.number("padding_waste_share")
    if layers is not None and share is not None and share > MUCH_WASTE:
        yield Finding(
            "padding_layers",
            "warning",
            f"{layers.value} layers of padding make the groups equal: up to {share:.2%} of the "
            "pool holds nothing.",
            {"padding_layers": layers.value, "share": share},
        )


def _graphs(start: Start) -> Iterator[Finding]:
    estimate, total = start.number("cuda_graph_estimate_bytes"), start.number("total_gpu_bytes")
    most = MOST_GRAPHS_SHARE * total if total else MOST_GRAPHS
    if estimate and estimate > most:
        yield Finding(
            "graph_estimate_implausible",
            "warning",
            f"{format_bytes(int(estimate))} of CUDA graphs is the estimator's extrapolation of two "
            "samples, and no size that graphs have: turn it off with "
            "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=0 and leave room by the fraction.",
            {"cuda_graph_estimate_bytes": int(estimate)},
        )
    measured = start.most("cuda_graph_bytes") or start.most("cuda_graph_pool_bytes")
    if estimate and measured and isinstance(measured.value, int):
        apart = measured.value - int(estimate)
        if abs(apart) > GRAPHS_APART:
            yield Finding(
                "graph_estimate_off",
                "note",
                f"Graphs took {format_bytes(measured.value)}; {format_bytes(int(estimate))} were "
                f"estimated and taken out of the pool: {format_bytes(apart)} apart.",
                {"measured_bytes": measured.value, "estimated_bytes": int(estimate)},
            )


def _unreserved(start: Start) -> Iterator[Finding]:
    """Graphs that were estimated and that nothing is left for."""
    applied, estimate = start.last("cuda_graph_estimate_applied"), start.last(ESTIMATE)
    same = start.number("gpu_memory_utilization_for_same_pool")
    if applied is None or applied.value or estimate is None or not same or start.failures:
        return
    yield Finding(
        "graphs_not_reserved",
        "note",
        f"{format_gib(int(estimate.value))} of CUDA graphs are estimated and not taken out of the "
        f"pool: they need room beside the fraction. With the estimate on, {same:g} gives the same "
        "pool.",
        {"cuda_graph_estimate_bytes": estimate.value, "for_same_pool": same},
    )


def _fraction(start: Start) -> Iterator[Finding]:
    share = start.number("gpu_memory_utilization")
    without = start.number("gpu_memory_utilization_without_graphs")
    same = start.number("gpu_memory_utilization_for_same_pool")
    if share and without and same:
        yield Finding(
            "graphs_in_fraction",
            "note",
            f"This version takes the graphs out of the fraction: {share:g} gives the pool that "
            f"{without:g} gave before, and {same:g} gives the old pool of {share:g}.",
            {"share": round(share - without, 4), "for_same_pool": same},
        )


def _storage(start: Start) -> Iterator[Finding]:
    used, asked = start.last("kv_dtype_used"), start.last("kv_cache_dtype")
    if used is not None and (asked is None or asked.value == "auto"):
        yield Finding(
            "kv_dtype_resolved",
            "note",
            f"The cache is stored as {used.value}, though kv_cache_dtype says auto: the checkpoint "
            "or the backend decides.",
            {"kv_dtype": used.value},
        )


def _others(start: Start) -> Iterator[Finding]:
    """Memory that was not free before this start took any, where it started all the same."""
    total, free = start.most("total_gpu_bytes"), start.least("free_gpu_bytes")
    if start.engine != "vllm" or total is None or free is None or start.failures:
        return
    held = int(total.value) - int(free.value)
    if held > OTHERS_HOLD:
        yield Finding(
            "others_hold_memory",
            "note",
            f"{format_gib(held)} of {format_gib(int(total.value))} were taken before this "
            "start: the fraction is of the total, and what others hold is outside it.",
            {"held_bytes": held, "free_gpu_bytes": free.value},
        )


def _ranks(start: Start) -> Iterator[Finding]:
    said = start.by_rank("available_kv_bytes")
    sizes = {rank: f.value for rank, f in said.items() if isinstance(f.value, int)}
    if len(sizes) < 2 or max(sizes.values()) - min(sizes.values()) < RANKS_APART:
        return
    least, most = min(sizes, key=sizes.__getitem__), max(sizes, key=sizes.__getitem__)
    yield Finding(
        "ranks_differ",
        "warning",
        f"{least or 'The driver'} has {format_gib(sizes[least])} for the cache and "
        f"{most or 'the driver'} {format_gib(sizes[most])}: all ranks use what the smallest has.",
        {"least_bytes": sizes[least], "most_bytes": sizes[most]},
    )


def _short_pool(start: Start) -> Iterator[Finding]:
    pool = pool_of(start)
    usable = usable_tokens(pool)
    length = start.number("max_model_len")
    if start.failures or not usable or not length or usable >= length or pool.concurrency:
        return
    yield Finding(
        "pool_below_length",
        "warning",
        f"Requests of up to {int(length):,} tokens are taken, and the pool holds {usable:,}: a "
        "longer one is never finished.",
        {"kv_tokens": usable, "max_model_len": int(length), "servable_tokens": usable},
    )


def _contradictions(start: Start) -> Iterator[Finding]:
    total = start.number("total_gpu_bytes")
    for name in ("available_kv_bytes", "weights_bytes", "free_gpu_bytes", "kv_bytes"):
        fact = start.most(name)
        per_rank = start.engine in ("vllm", "sglang", "tensorrt-llm")
        if total and per_rank and fact and isinstance(fact.value, int) and fact.value > total:
            yield Finding(
                "contradiction",
                "warning",
                f"Line {fact.line} says {name} {format_gib(fact.value)}, more than the card's "
                f"{format_gib(int(total))}: the lines are of different runs, or altered.",
                {name: fact.value, "total_gpu_bytes": int(total)},
            )


def _of_one_engine(start: Start) -> Iterator[Finding]:
    for message, numbers in causes.capped_by_states(start):
        yield Finding("requests_capped_by_states", "warning", message, numbers)
    for message, numbers in causes.cut_window(start):
        yield Finding("window_cut_to_pool", "warning", message, numbers)


CHECKS: tuple[Callable[[Start], Iterator[Finding]], ...] = (
    _contradictions, _divided, _short_pool, _graphs, _unreserved, _ranks, _others, _hybrid,
    _padding, _storage, _fraction, _of_one_engine,
)  # fmt: skip
