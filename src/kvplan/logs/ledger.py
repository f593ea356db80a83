"""The ledger of a run as it was logged: the terms that its lines state, and what they leave over.

Terms have the names that plans give them, so that the two stand beside each other.
"""

from __future__ import annotations

from collections.abc import Iterator

from kvplan.core.ledger import Ledger, Term
from kvplan.logs.facts import Fact, Start
from kvplan.logs.pool import pool_of

# Facts and the terms of a plan that they are, the first that is said; of the rank whose pool
# decides, else the most that a rank has.
TERMS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("weights", ("weights_bytes",)),
    ("weights_and_non_torch", ("consumed_bytes",)),
    ("activation_peak", ("activation_peak_bytes",)),
    ("non_torch", ("non_torch_bytes",)),
    ("cuda_graphs", ("cuda_graph_estimate_bytes",)),
)
# Of a single process over several devices: their sum.
SUMMED: tuple[tuple[str, str], ...] = (
    ("weights", "model_buffer_bytes"),
    ("compute_buffer", "compute_buffer_bytes"),
    ("recurrent_state", "recurrent_state_bytes"),
)


def ledger_of(start: Start) -> Ledger:
    """The terms of the rank with the smallest pool; the last is the pool, where one is said."""
    pool = pool_of(start)
    terms = [*_terms(start)]
    graphs = _of_pool(start, "cuda_graph_bytes")
    if graphs is not None and not any(term.name == "cuda_graphs" for term in terms):
        terms.append(_term("cuda_graphs", graphs, inside=bool(_graphs_inside(start))))
    requested = _of_pool(start, "requested_bytes")
    if requested and isinstance(requested.value, int) and pool.num_bytes is not None:
        inside = sum(term.num_bytes for term in terms if term.inside_budget)
        rest = requested.value - inside - pool.num_bytes
        said = "what the budget has beside the terms that are said"
        terms.append(Term(name="unexplained", num_bytes=rest, source=said))
    if pool.num_bytes is not None:
        terms.append(
            Term(
                name="kv_pool",
                num_bytes=pool.num_bytes,
                source=pool.how,
                error_bytes=pool.error_bytes,
            )
        )
    return Ledger(tuple(terms))


def _terms(start: Start) -> Iterator[Term]:
    applied = _graphs_inside(start)
    names = set()
    for name, facts in TERMS:
        said = next((found for fact in facts if (found := _of_pool(start, fact))), None)
        if said is not None and (name != "cuda_graphs" or applied):
            names.add(name)
            yield _term(name, said)
    for name, fact in SUMMED:
        said = start.last(fact)
        if said is not None and name not in names:
            devices = start.by_rank(fact)
            on_card = [f for rank, f in devices.items() if not is_host(rank)]
            held = on_card or [*devices.values()]
            total = sum(int(f.value) for f in held if isinstance(f.value, int))
            yield Term(name=name, num_bytes=total, source=f"line {said.line}")


def _of_pool(start: Start, name: str) -> Fact | None:
    """What the rank with the smallest pool says of a name, else the most that any does."""
    pool = start.least("available_kv_bytes")
    own = start.by_rank(name).get(pool.rank) if pool is not None else None
    return own or start.most(name)


def is_host(device: str | None) -> bool:
    """Whether llama.cpp's name of a buffer is host memory's: ``CPU_Mapped``, ``CUDA_Host``."""
    return device is not None and (device.startswith(("CPU", "BLAS")) or device.endswith("_Host"))


def _graphs_inside(start: Start) -> bool:
    """Whether an estimate of the graphs was taken out of the budget."""
    applied = start.last("cuda_graph_estimate_applied")
    return applied is not None and applied.value is True


def _term(name: str, fact: Fact, *, inside: bool = True) -> Term:
    value = fact.value if isinstance(fact.value, int) else 0
    return Term(name=name, num_bytes=value, source=f"line {fact.line}", inside_budget=inside)
