"""No engine: plain arithmetic, memory − weights − allowance."""

from __future__ import annotations

from kvplan.core.ledger import Ledger, Term
from kvplan.core.units import ceil_div


def plain_ledger(
    *,
    memory_bytes: int,
    weights_bytes: int,
    weights_source: str,
    allowance_bytes: int,
    allowance_source: str,
    ranks: int,
) -> Ledger:
    """The terms of one of ``ranks`` cards that share the weights evenly.

    The pool is what is left, and is negative where the weights alone are too large.
    """
    share = ceil_div(weights_bytes, ranks)
    source = weights_source if ranks == 1 else f"{weights_source}, split evenly over {ranks} cards"
    return Ledger(
        (
            Term(name="weights", num_bytes=share, source=source),
            Term(name="allowance", num_bytes=allowance_bytes, source=allowance_source),
            Term(
                name="kv_pool",
                num_bytes=memory_bytes - share - allowance_bytes,
                source="what is left",
            ),
        )
    )
