"""Start-up errors in words: what was asked, what there was, what is short, and what would fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from kvplan.core.errors import BadValue
from kvplan.core.units import format_bytes, format_gib
from kvplan.core.version import Version
from kvplan.logs import allocations, causes
from kvplan.logs.facts import UNTOLD, Failure, Start, Value
from kvplan.logs.findings import Finding
from kvplan.logs.ledger import ledger_of
from kvplan.logs.pool import V0_BLOCK
from kvplan.logs.versions import likely_version

Numbers = Mapping[str, Value]

# v1/core/kv_cache_utils.py, _check_enough_kv_cache_memory: in 0.8.5, not yet in 0.8.3
ESTIMATES_SINCE = Version((0, 8, 5))
# Facts that are printed once the cache's size is known.
POOLED = ("available_kv_bytes", "kv_tokens", "kv_bytes", "num_gpu_blocks")
# What the innermost frame of a traceback was for, and what makes it smaller.
STAGES: Mapping[str, str] = {
    "load_model": "while the weights were loaded: they are too large for the card.",
    "profile_run": (
        "in the profile, before the cache was made: a smaller --max-num-batched-tokens or "
        "--max-num-seqs makes the batch smaller."
    ),
    "encoder": (
        "in the encoder, on the largest images or videos that a prompt may hold: fewer or smaller "
        "ones (--limit-mm-per-prompt, --mm-processor-kwargs) make it smaller, not the cache."
    ),
    "sampler": "in the sampler's warm-up: a smaller --max-num-seqs makes it smaller.",
    "capture_model": (
        "while graphs were captured, outside the budget: leave more of the card free, or capture "
        "fewer sizes (--enforce-eager captures none)."
    ),
}


def failures_of(start: Start) -> Iterator[Finding]:
    """Each error of a start as a finding; what two of its lines say alike, once."""
    told: set[object] = set()
    causes_told = any(failure.code != UNTOLD for failure in start.failures)
    for failure in start.failures:
        if failure.code == UNTOLD and causes_told:
            continue
        words = WORDS.get(failure.code)
        said = words(start, failure.numbers) if words else ""
        alike = _of_ranks(failure) or said
        if alike and alike in told:
            continue
        told.add(alike)
        numbers = dict(failure.numbers) | {"line": failure.line}
        yield Finding(failure.code, "error", said or _quoted(failure), numbers)


def _of_ranks(failure: Failure) -> object:
    """What is alike of an allocation that every rank fails at, with other bytes free on each."""
    wanted = failure.numbers.get("allocation_bytes")
    return (failure.code, wanted) if wanted and failure.rank is not None else None


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
    # Of a pipeline 0.14 to 0.16 count the layers of all stages, others those of one
    # (v1/core/kv_cache_utils.py, get_kv_cache_configs).
    staged = (start.number("pipeline_parallel_size") or 1) > 1
    said = (
        f"One request of {length:,} tokens needs {format_gib(needed)} of cache"
        f"{', as the engine counts a pipeline' if staged else ' on each card'}, and "
        f"{format_gib(available)} are left: {format_gib(needed - available)} short."
    )
    longest = numbers.get("estimated_max_model_len")
    if isinstance(longest, int):
        return f"{said} The engine's own estimate of the longest is {longest:,} tokens."
    likely = likely_version(start)
    if likely is not None and _estimates(likely.version):
        return said + " Not even a short one fits beside what every request holds."
    share = length * available // needed if 0 < available < needed else 0
    return f"{said} In proportion at most {share:,} tokens fit." if share else said


def _estimates(version: str) -> bool:
    """Whether a release prints the longest length that fits, if there is one."""
    try:
        return Version.parse(version) >= ESTIMATES_SINCE
    except BadValue:
        return False


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
    return f"{of} failed {_stage(start)}{_though_free(wanted, free)}"


def _stage(start: Start) -> str:
    """When an allocation failed, as far as a line tells."""
    frame, private = start.last("stage"), start.number("private_pool_bytes")
    if frame is not None:
        return STAGES[str(frame.value)]
    if any(start.number(name) for name in POOLED):
        return (
            "after the cache was made: what is allocated outside the budget (graphs, compute "
            "buffers, spikes of a batch) had no room. Leave more of the card free."
        )
    if private:
        return (
            f"when graphs had been captured ({format_bytes(int(private))} in private pools): what "
            "is allocated outside the budget had no room. Leave more of the card free."
        )
    return "at a stage that no line tells: the weights, the profile, the cache or the graphs."


def _though_free(wanted: Value | None, free: Value | None) -> str:
    """A word on an allocation that was refused though more was free."""
    if not isinstance(wanted, int) or not isinstance(free, int) or free < wanted:
        return ""
    return (
        " More was free than was asked for: another limit refused it, as a driver's on memory that "
        "is shared with the host (GTT)."
    )


def _sampler(start: Start, numbers: Numbers) -> str:
    requests = numbers.get("dummy_requests")
    if not isinstance(requests, int):
        return ""
    return (
        f"The warm-up with {requests:,} requests had no room for what the sampler (or the pooler) "
        f"holds of them: pass --max-num-seqs below {requests}, or a smaller "
        "--gpu-memory-utilization, which leaves more beside the cache."
    )


def _disturbed(start: Start, numbers: Numbers) -> str:
    before = numbers.get("free_before_profile_bytes")
    after = numbers.get("free_after_profile_bytes")
    if not isinstance(before, int) or not isinstance(after, int):
        return ""
    return (
        f"{format_gib(before)} were free before the profile and {format_gib(after)} after it: "
        f"another process freed {format_gib(after - before)} meanwhile, so that what this one "
        "takes cannot be told. Start again once the others are done."
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


def _untold(start: Start, numbers: Numbers) -> str:
    return (
        "It failed, and no line that was read says why: the cause stands in the traceback, above "
        "or below this line. Pass the whole log."
    )


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
    "sampler_exceeds_memory": _sampler,
    "profile_disturbed": _disturbed,
    UNTOLD: _untold,
}
