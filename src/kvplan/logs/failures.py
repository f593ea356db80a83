"""Start-up errors in words: what was asked, what there was, what is short, and what would fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from kvplan.core.units import format_bytes, format_gib
from kvplan.logs import allocations, causes
from kvplan.logs.facts import Failure, Start, Value
from kvplan.logs.findings import Finding
from kvplan.logs.ledger import ledger_of
from kvplan.logs.pool import V0_BLOCK

Numbers = Mapping[str, Value]


def failures_of(start: Start) -> Iterator[Finding]:
    """Each error of a start as a finding; what two of its lines say alike, once."""
    told = set()
    for failure in start.failures:
        words = WORDS.get(failure.code)
        said = words(start, failure.numbers) if words else ""
        if said and said in told:
            continue
        told.add(said)
        numbers = dict(failure.numbers) | {"line": failure.line}
        yield Finding(failure.code, "error", said or _quoted(failure), numbers)


def _quoted(failure: Failure) -> str:
    return f"It failed: {failure.text.strip()}"


def _length(start: Start, numbers: Numbers) -> str:
    length = numbers.get("max_model_len")
    if not isinstance(length, int):
        return ""
    tokens = numbers.get("kv_tokens")
    if isinstance(tokens, int):
        return (
            f"One request of {length:,} tokens does not fit: the pool holds {tokens:,} tokens "
            f"({tokens // V0_BLOCK:,} blocks of {V0_BLOCK}). The longest that fits is {tokens:,}."
        )
    needed, available = numbers.get("needed_kv_bytes"), numbers.get("available_kv_bytes")
    if not isinstance(needed, int) or not isinstance(available, int):
        return ""
    said = (
        f"One request of {length:,} tokens needs {format_gib(needed)} of cache on each card, and "
        f"{format_gib(available)} are left: {format_gib(needed - available)} short."
    )
    longest = numbers.get("estimated_max_model_len")
    if isinstance(longest, int):
        return f"{said} The engine's own estimate of the longest is {longest:,} tokens."
    return said + " Not even a short one fits beside what every request holds."


def _nothing_left(start: Start, numbers: Numbers) -> str:
    if start.engine == "sglang" and (said := causes.sglang_budget(start, numbers)):
        return said
    terms = [term for term in ledger_of(start) if term.name not in ("kv_pool", "unexplained")]
    listed = " + ".join(f"{t.name.replace('_', ' ')} {format_gib(t.num_bytes)}" for t in terms)
    requested, left = start.number("requested_bytes"), start.number("available_kv_bytes")
    budget = f"the budget of {format_gib(int(requested))}" if requested else "the card's fraction"
    said = f"Nothing of {budget} is left for the cache"
    if left is not None and left < 0:
        said += f" ({format_gib(int(left))})"
    if not terms:
        return f"{said}: weights and activations take all of it."
    largest = max(terms, key=lambda term: term.num_bytes)
    return f"{said}: {listed}; {largest.name.replace('_', ' ')} take most."


def _taken(start: Start, numbers: Numbers) -> str:
    free, total = numbers.get("free_gpu_bytes"), numbers.get("total_gpu_bytes")
    requested = numbers.get("requested_bytes")
    if not isinstance(free, int) or not isinstance(total, int) or not isinstance(requested, int):
        return ""
    share = int(100 * free / total) / 100 if total > 0 else 0.0
    return (
        f"{format_gib(requested)} are asked for and {format_gib(free)} of {format_gib(total)} are "
        f"free: other processes hold {format_gib(total - free)}. End them, or ask for at most "
        f"{share:.2f} of the card."
    )


def _out_of_memory(start: Start, numbers: Numbers) -> str:
    wanted = numbers.get("allocation_bytes") or numbers.get("requested_bytes")
    of = f"An allocation of {format_bytes(wanted)}" if isinstance(wanted, int) else "An allocation"
    free, total = numbers.get("free_gpu_bytes"), numbers.get("total_gpu_bytes")
    if isinstance(free, int) and isinstance(total, int):
        of += f", with {format_bytes(free)} of {format_bytes(total)} free,"
    if start.engine in allocations.ENGINES:
        return allocations.out_of_memory(start, numbers, of)
    pooled = any(start.number(name) for name in ("available_kv_bytes", "kv_tokens", "kv_bytes"))
    if pooled:
        return (
            f"{of} failed after the cache was made: what is allocated outside the budget (graphs, "
            "compute buffers, spikes of a batch) had no room. Leave more of the card free."
        )
    return (
        f"{of} failed before the cache was made: the weights, or the profiled batch, are too large."
    )


def _states(start: Start, numbers: Numbers) -> str:
    sequences, blocks = numbers.get("max_num_seqs"), numbers.get("state_blocks")
    if not isinstance(sequences, int) or not isinstance(blocks, int):
        return ""
    return (
        f"Each sequence that decodes holds a block for its state: {sequences:,} are asked for and "
        f"the pool has {blocks:,} blocks. Pass --max-num-seqs {blocks} at most."
    )


def _longer_than_model(start: Start, numbers: Numbers) -> str:
    asked, most = numbers.get("max_model_len"), numbers.get("model_max_len")
    if not isinstance(asked, int) or not isinstance(most, int):
        return ""
    return f"{asked:,} tokens are asked for and the model's config declares {most:,}."


WORDS: Mapping[str, Callable[[Start, Numbers], str]] = {
    "length_exceeds_pool": _length,
    "no_cache_memory": _nothing_left,
    "memory_taken": _taken,
    "out_of_memory": _out_of_memory,
    "states_exceed_pool": _states,
    "length_exceeds_model": _longer_than_model,
    "weights_exceed_memory": allocations.weights_too_large,
    "cache_exceeds_memory": allocations.cache_too_large,
    "states_exceed_memory": allocations.states_too_large,
    "buffers_exceed_memory": allocations.buffers_too_large,
    "quantised_values_need_flash_attention": allocations.values_need_flash_attention,
    "cuda_graph_failed": causes.graphs_failed,
}
