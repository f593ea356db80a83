"""What follows from the facts of a start alone: costs of a token, of a sequence, of a card.

pool / concurrency = cost(length)                      one start
cost(a) = fixed + slope × a, cost(b) = fixed + slope × b      two lengths: an error line has two
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from kvplan.core.errors import BadValue
from kvplan.core.units import GIB, format_bytes
from kvplan.core.version import Version
from kvplan.logs.facts import Start
from kvplan.logs.pool import LoggedPool, pool_of
from kvplan.logs.versions import likely_version

# Printed tokens of models with one kind of layer differ from concurrency × length by rounding only.
SAME = 0.02
SHARE_DIGITS = 0.0001  # of the difference of two shares with four decimals
V1_SINCE, CONCURRENCY_SINCE = Version((0, 8)), Version((0, 20, 1))


@dataclass(frozen=True, slots=True)
class Inferred:
    """A figure that no line states, and how it follows."""

    name: str
    value: int | float | str
    unit: str
    how: str

    def to_dict(self) -> dict[str, Any]:
        """The contract's row of ``inferred``."""
        return asdict(self)


def infer(start: Start) -> list[Inferred]:
    """Everything that follows from one start."""
    pool = pool_of(start)
    return [
        *_meaning(start, pool),
        *_tokens(start, pool),
        *_cost_of_error(start),
        *_cost_of_pool(start, pool),
        *_sequences(start, pool),
        *_card(start),
    ]


def usable_tokens(pool: LoggedPool) -> int | None:
    """Tokens that fit: the printed ones, unless the concurrency tells that more or fewer do."""
    ratio = divided(pool)
    if pool.concurrency and pool.length and (ratio is not None or not pool.tokens):
        return round(pool.concurrency * pool.length)
    return pool.tokens


def divided(pool: LoggedPool) -> float | None:
    """How many times more tokens fit than are printed, where that is more than rounding."""
    if not pool.tokens or not pool.concurrency or not pool.length:
        return None
    ratio = pool.concurrency * pool.length / pool.tokens
    return ratio if abs(ratio - 1) > SAME else None


def _meaning(start: Start, pool: LoggedPool) -> Iterator[Inferred]:
    """What vLLM means by its tokens, which 0.20.1 changed (v1/core/kv_cache_utils.py)."""
    likely = likely_version(start)
    if start.engine != "vllm" or not pool.tokens or likely is None:
        return
    try:
        version = Version.parse(likely.version)
    except BadValue:
        return
    if version < V1_SINCE:
        means = "blocks × tokens of a block"
    elif version < CONCURRENCY_SINCE:
        means = "blocks ÷ groups of layers × the smallest block"
    else:
        means = "concurrency × max_model_len"
    yield Inferred("kv_tokens_means", means, "", f"vLLM {likely.version}")


def _tokens(start: Start, pool: LoggedPool) -> Iterator[Inferred]:
    if pool.tokens and not any(start.said("kv_tokens")):
        yield Inferred("kv_tokens", pool.tokens, "tokens", "blocks × tokens of a block")
    ratio = divided(pool)
    if ratio and pool.concurrency and pool.length:
        usable = usable_tokens(pool) or 0
        how = f"{pool.concurrency:g} requests × {pool.length:,} tokens"
        yield Inferred("usable_kv_tokens", usable, "tokens", how)
        yield Inferred("usable_over_printed", round(ratio, 3), "", f"{how} / {pool.tokens:,}")
    if pool.tokens and pool.concurrency and not pool.length:
        how = f"{pool.tokens:,} tokens / {pool.concurrency:g} requests"
        yield Inferred("max_model_len", round(pool.tokens / pool.concurrency), "tokens", how)


def _cost_of_error(start: Start) -> Iterator[Inferred]:
    """The two lengths of "to serve at least one request": the asked one, and what would fit."""
    needed, length = start.number("needed_kv_bytes"), start.number("max_model_len")
    if not needed or not length:
        return
    how = f"{format_bytes(int(needed))} for {int(length):,} tokens"
    yield Inferred("bytes_per_token", round(needed / length), "bytes", how)
    available, shorter = start.number("available_kv_bytes"), start.number("estimated_max_model_len")
    if not available or not shorter or not 0 < shorter < length or not 0 < available < needed:
        return
    found = two_lengths((int(shorter), float(available)), (int(length), float(needed)))
    # Both figures have two decimals: the fixed part is only told where it is more than they leave.
    least = GIB // 100 * (length + shorter) / (length - shorter)
    if found is not None and found[0] > least:
        yield from two_points(found, f"{how}, {format_bytes(int(available))} for {int(shorter):,}")


def two_lengths(a: tuple[int, float], b: tuple[int, float]) -> tuple[float, float] | None:
    """Fixed part and slope of a cost that is known at two lengths; None where they are the same."""
    if a[0] == b[0]:
        return None
    slope = (b[1] - a[1]) / (b[0] - a[0])
    return a[1] - slope * a[0], slope


def two_points(found: tuple[float, float], how: str) -> Iterator[Inferred]:
    """A fixed part and a slope, as inferred figures."""
    fixed, slope = found
    if slope <= 0:
        return
    yield Inferred("fixed_bytes_per_sequence", round(fixed), "bytes", how)
    yield Inferred("marginal_bytes_per_token", round(slope), "bytes", how)
    yield Inferred("fixed_over_slope_tokens", round(fixed / slope), "tokens", how)


def _cost_of_pool(start: Start, pool: LoggedPool) -> Iterator[Inferred]:
    tokens = usable_tokens(pool)
    stated = start.number("needed_kv_bytes")
    if pool.num_bytes and pool.num_bytes > 0 and tokens and not stated:
        how = f"{format_bytes(pool.num_bytes)} / {tokens:,} tokens"
        yield Inferred("bytes_per_token", round(pool.num_bytes / tokens), "bytes", how)
    if pool.sequence_bytes and pool.length:
        how = f"{format_bytes(pool.num_bytes or 0)} / {pool.concurrency:g}"
        yield Inferred("bytes_per_full_sequence", round(pool.sequence_bytes), "bytes", how)


def _sequences(start: Start, pool: LoggedPool) -> Iterator[Inferred]:
    if pool.tokens and pool.length and not pool.concurrency:
        full = pool.tokens / pool.length
        how = f"{pool.tokens:,} tokens / {pool.length:,} of a request"
        yield Inferred("full_length_requests", round(full, 2), "", how)


def _card(start: Start) -> Iterator[Inferred]:
    """The card's total behind a share of it, as the lines of graph profiling state both."""
    share = start.number("gpu_memory_utilization")
    without = start.number("gpu_memory_utilization_without_graphs")
    graphs = start.number("cuda_graph_estimate_bytes")
    if share and without and graphs and share > without and not any(start.said("total_gpu_bytes")):
        part = share - without
        yield Inferred("cuda_graph_share", round(part, 4), "", f"{share:g} − {without:g}")
        error = GIB / 200 / graphs + SHARE_DIGITS / part
        how = f"{format_bytes(int(graphs))} / {part:.4f}, ± {error:.0%} by their digits"
        yield Inferred("total_gpu_bytes", round(graphs / part), "bytes", how)
    total = start.number("total_gpu_bytes")
    if total and share and not any(start.said("requested_bytes")):
        how = f"{share:g} × {format_bytes(int(total))}"
        yield Inferred("requested_bytes", round(total * share), "bytes", how)
