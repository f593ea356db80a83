"""Where every byte of a card goes: ordered terms, each with its source and its error."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One named use of memory on one rank.

    ``error_bytes`` is 0 where the figure is exact; ``inside_budget`` says whether the engine's
    fraction pays for it; ``source`` is a key, a flag, a measurement or an estimate. A term that is
    ``on_host`` is in the machine's memory and takes nothing of the card.
    """

    name: str
    num_bytes: int
    source: str
    error_bytes: int = 0
    inside_budget: bool = True
    on_host: bool = False

    def to_dict(self) -> dict[str, Any]:
        """The contract's ledger row."""
        row = asdict(self)
        return {"name": row.pop("name"), "bytes": row.pop("num_bytes")} | row


@dataclass(frozen=True, slots=True)
class Ledger:
    """The terms of the fullest rank, in the order they are spent; the last is the KV pool."""

    terms: tuple[Term, ...]

    def __iter__(self) -> Iterator[Term]:
        return iter(self.terms)

    @property
    def total(self) -> int:
        """All terms on the card."""
        return sum(term.num_bytes for term in self.terms if not term.on_host)

    @property
    def pool_bytes(self) -> int:
        """The KV pool."""
        return self.terms[-1].num_bytes
