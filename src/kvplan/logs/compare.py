"""Two ledgers side by side, and two starts: what differs, by how much, and why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from kvplan.core.ledger import Ledger, Term
from kvplan.core.units import format_bytes, format_gib
from kvplan.logs.facts import Start
from kvplan.logs.infer import Inferred, two_lengths, two_points
from kvplan.logs.ledger import ledger_of
from kvplan.logs.pool import pool_of

# Settings that decide about the pool, told where two starts differ in them.
SETTINGS = (
    "version", "model", "gpu", "max_model_len", "gpu_memory_utilization", "mem_fraction_static",
    "tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size", "kv_cache_dtype",
    "max_num_batched_tokens", "max_num_seqs", "block_size", "enforce_eager", "quantization",
    "enable_prefix_caching", "attention_backend", "cuda_graph_estimate_applied", "total_gpu_bytes",
    "free_gpu_bytes", "requested_bytes",
)  # fmt: skip
ROUNDING = 0.005
SMALL = 1 << 20  # terms that are nearer than their digits are the same


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One figure as it was logged and as it was predicted; ``why`` is empty where no rule tells."""

    name: str
    logged: int | float | None
    predicted: int | float | None
    why: str = ""

    @property
    def ratio(self) -> float | None:
        """The logged figure over the predicted one."""
        if not self.predicted or self.logged is None:
            return None
        return self.logged / self.predicted

    def to_dict(self) -> dict[str, Any]:
        """The contract's row of ``differences``."""
        return {
            "name": self.name,
            "logged": self.logged,
            "predicted": self.predicted,
            "ratio": self.ratio,
            "why": self.why,
        }


def ledgers_apart(
    logged: Ledger, predicted: Ledger, *, of_budget: bool = True
) -> Iterator[Difference]:
    """The terms that both have, in the order of the log.

    ``of_budget`` where the engine's pool is what its budget leaves; llama.cpp's is asked for.
    """
    planned = {term.name: term for term in predicted}
    merged = _merged(planned)
    for term in logged:
        own = planned.get(term.name) or merged.get(term.name)
        if own is not None:
            yield Difference(
                name=term.name,
                logged=term.num_bytes,
                predicted=own.num_bytes,
                why=_why(term, own, of_budget=of_budget),
            )


def _merged(planned: dict[str, Term]) -> dict[str, Term]:
    """Terms that some versions print as one figure."""
    weights, outside = planned.get("weights"), planned.get("non_torch")
    if weights is None or outside is None:
        return {}
    both = Term(
        name="weights_and_non_torch",
        num_bytes=weights.num_bytes + outside.num_bytes,
        source="",
        error_bytes=weights.error_bytes + outside.error_bytes,
    )
    return {both.name: both}


def _why(logged: Term, predicted: Term, *, of_budget: bool) -> str:
    apart = logged.num_bytes - predicted.num_bytes
    if abs(apart) <= predicted.error_bytes + logged.error_bytes:
        error = format_bytes(predicted.error_bytes)
        return f"within the prediction's error of {error}" if predicted.error_bytes else "equal"
    if logged.name == "kv_pool" and of_budget:
        return "what is left: the sum of the other differences, and of what no line states"
    if logged.name == "kv_pool":
        times = logged.num_bytes / max(1, predicted.num_bytes)
        if abs(times - 1) < ROUNDING:
            return "equal but for rounding"
        return f"{times:.2f} × the planned: other cells, another type, or layers on another device"
    if not logged.inside_budget and predicted.inside_budget:
        return "measured after the pool was made; the prediction counts it inside the budget"
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two starts: settings and terms that differ, what the pools hold, what follows of both."""

    settings: tuple[tuple[str, Any, Any], ...]
    terms: tuple[tuple[str, int | None, int | None], ...]
    figures: tuple[tuple[str, float, float], ...]
    inferred: tuple[Inferred, ...]
    message: str

    def to_dict(self) -> dict[str, Any]:
        """The ``compared`` object."""
        return {
            "settings": [
                {"name": name, "first": first, "second": second}
                for name, first, second in self.settings
            ],
            "terms": [
                {
                    "name": name,
                    "first_bytes": first,
                    "second_bytes": second,
                    "delta_bytes": None if first is None or second is None else second - first,
                }
                for name, first, second in self.terms
            ],
            "figures": [
                {"name": name, "first": first, "second": second, "ratio": second / first}
                for name, first, second in self.figures
            ],
            "inferred": [asdict(row) for row in self.inferred],
            "message": self.message,
        }


def compare_starts(first: Start, second: Start) -> Comparison:
    """What changed from the first to the second, and why the pool moved."""
    terms = tuple(_terms(first, second))
    settings = tuple(_settings(first, second))
    return Comparison(
        settings=settings,
        terms=terms,
        figures=tuple(_figures(first, second)),
        inferred=tuple(cost_of_both(first, second)),
        message=_message(first, second, settings, terms),
    )


def cost_of_both(first: Start, second: Start) -> Iterator[Inferred]:
    """Fixed part and slope of a sequence's cost from concurrencies at two lengths.

    Where the pools are not said they count as the same, and only their ratio follows.
    """
    a, b = pool_of(first), pool_of(second)
    if not (a.length and b.length and a.concurrency and b.concurrency):
        return
    said = a.num_bytes and b.num_bytes
    pools = (a.num_bytes, b.num_bytes) if said else (1.0, 1.0)
    found = two_lengths(
        (a.length, (pools[0] or 0) / a.concurrency), (b.length, (pools[1] or 0) / b.concurrency)
    )
    if found is None or found[1] <= 0:
        return
    how = f"{a.concurrency:g} × {a.length:,} tokens, {b.concurrency:g} × {b.length:,} tokens"
    if said:
        yield from two_points(found, how)
    else:
        tokens = round(found[0] / found[1])
        yield Inferred("fixed_over_slope_tokens", tokens, "tokens", f"{how}, of the same pool")


def _settings(first: Start, second: Start) -> Iterator[tuple[str, Any, Any]]:
    for name in SETTINGS:
        a, b = first.last(name), second.last(name)
        said = (a.value if a else None, b.value if b else None)
        if said[0] != said[1]:
            yield name, *said


def _terms(first: Start, second: Start) -> Iterator[tuple[str, int | None, int | None]]:
    a = {term.name: term.num_bytes for term in ledger_of(first)}
    b = {term.name: term.num_bytes for term in ledger_of(second)}
    for name in dict.fromkeys((*a, *b)):
        yield name, a.get(name), b.get(name)


def _figures(first: Start, second: Start) -> Iterator[tuple[str, float, float]]:
    """What the pool holds, where both say it."""
    a, b = pool_of(first), pool_of(second)
    pairs = (("kv_tokens", a.tokens, b.tokens), ("max_concurrency", a.concurrency, b.concurrency))
    for name, x, y in pairs:
        if x and y:
            yield name, x, y


def _message(
    first: Start,
    second: Start,
    settings: tuple[tuple[str, Any, Any], ...],
    terms: tuple[tuple[str, int | None, int | None], ...],
) -> str:
    """The pool's move, and the terms and settings that it is of."""
    a, b = pool_of(first).num_bytes, pool_of(second).num_bytes
    changed = ", ".join(f"{name} {x} → {y}" for name, x, y in settings[:8]) or "no setting"
    if a is None or b is None:
        return f"Between the two: {changed}."
    moved = [
        (name, y - x)
        for name, x, y in terms
        if name != "kv_pool" and x is not None and y is not None and abs(y - x) > SMALL
    ]
    parts = ", ".join(f"{name.replace('_', ' ')} {_signed(delta)}" for name, delta in moved)
    because = f"{parts}; " if parts else ""
    moves = f"The pool went from {format_gib(a)} to {format_gib(b)} ({_signed(b - a)})"
    return f"{moves}: {because}{changed}."


def _signed(delta: int) -> str:
    return f"{'+' if delta > 0 else '−'}{format_gib(abs(delta))}"
