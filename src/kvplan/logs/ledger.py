"""The ledger of a run as it was logged: the terms that its lines state, and what they leave over.

Terms have the names that plans give them, so that the two stand beside each other.
"""

from __future__ import annotations

from collections.abc import Iterator

from kvplan.core.ledger import Ledger, Term
from kvplan.core.units import MIB
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
# Of a single process over several devices: those of the fullest.
OF_DEVICES: tuple[tuple[str, str], ...] = (
    ("weights", "model_buffer_bytes"),
    ("compute_buffer", "compute_buffer_bytes"),
    ("recurrent_state", "recurrent_state_bytes"),
)


def ledger_of(start: Start) -> Ledger:
    """The terms of the rank with the smallest pool; the last is the pool, where one is said."""
    pool = pool_of(start)
    fullest = fullest_device(start)
    terms = [*_terms(start, fullest)]
    graphs = _of_pool(start, "cuda_graph_bytes")
    if graphs is not None and not any(term.name == "cuda_graphs" for term in terms):
        terms.append(_term("cuda_graphs", graphs, inside=bool(_graphs_inside(start))))
    requested = _of_pool(start, "requested_bytes")
    if requested and isinstance(requested.value, int) and pool.num_bytes is not None:
        inside = sum(term.num_bytes for term in terms if term.inside_budget)
        rest = requested.value - inside - pool.num_bytes
        said = "what the budget has beside the terms that are said"
        terms.append(Term(name="unexplained", num_bytes=rest, source=said))
    own = _own_cache(start, fullest) if fullest is not None else None
    if own is not None:
        terms.append(own)
    elif pool.num_bytes is not None:
        terms.append(
            Term(
                name="kv_pool",
                num_bytes=pool.num_bytes,
                source=pool.how,
                error_bytes=pool.error_bytes,
            )
        )
    return Ledger(tuple(terms))


def _terms(start: Start, fullest: str | None) -> Iterator[Term]:
    applied = _graphs_inside(start)
    names = set()
    for name, facts in TERMS:
        said = next((found for fact in facts if (found := _of_pool(start, fact))), None)
        if said is not None and (name != "cuda_graphs" or applied):
            names.add(name)
            yield _term(name, said)
    for name, fact in OF_DEVICES:
        devices = start.by_rank(fact)
        if devices and name not in names:
            on_card = [f for rank, f in devices.items() if not is_host(rank)]
            held = on_card or [*devices.values()]
            own = devices.get(fullest) if len(on_card) > 1 else None
            told = [own] if own is not None else held
            total = sum(int(f.value) for f in told if isinstance(f.value, int))
            of = f", {fullest} of {len(on_card)} cards" if own is not None else ""
            yield Term(name=name, num_bytes=total, source=f"line {told[-1].line}{of}")


def cards_of(start: Start) -> list[str]:
    """llama.cpp's devices that have weights or caches and are none of the host's.

    What rows are cut over all cards has a buffer of its own, ``CUDA_Split``.
    """
    named = [*start.by_rank("model_buffer_bytes"), *start.by_rank("kv_buffer_bytes")]
    cards = [name for name in dict.fromkeys(named) if name is not None and not is_host(name)]
    return [] if any(name.endswith("_Split") for name in cards) else cards


def fullest_device(start: Start) -> str | None:
    """The card that llama.cpp filled most, where it has several; None where it has one."""
    cards = cards_of(start)
    facts = [start.by_rank(fact) for _, fact in OF_DEVICES] + [start.by_rank("kv_buffer_bytes")]

    def held(card: str) -> int:
        """Bytes of a card."""
        found = (by_rank[card].value for by_rank in facts if card in by_rank)
        return sum(value for value in found if isinstance(value, int))

    return max(cards, key=held) if len(cards) > 1 else None


def _own_cache(start: Start, card: str) -> Term | None:
    """The part of a cache that one of several cards has."""
    said = start.by_rank("kv_buffer_bytes").get(card)
    if said is None or not isinstance(said.value, int):
        return None
    source = f"line {said.line}, {card} of {len(cards_of(start))} cards"
    return Term(name="kv_pool", num_bytes=said.value, source=source, error_bytes=MIB // 200)


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
