"""A tier behind a card's pool: host memory that keeps what the pool has let go of.

It does not enlarge the pool: a sequence that runs has to be in the pool whole. It keeps prefixes,
so that they are loaded back over the card's link in place of being computed again.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from kvplan.core.units import ceil_div


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """One kind of host memory of a start.

    ``rank_bytes`` is one rank's part of it, ``host_bytes`` what all ranks and copies take of one
    host. A prefix comes in blocks of ``block_tokens`` tokens, ``rank_block_bytes`` of each over one
    card's link, and ``fixed_bytes`` beside them (windows, a state). ``tokens`` are those of
    different prefixes that one copy of the model keeps. ``asked`` is whether a flag asks for it.
    """

    name: str
    rank_bytes: int
    host_bytes: int
    ranks: int
    block_tokens: int
    rank_block_bytes: int
    tokens: int
    source: str
    fixed_bytes: int = 0
    asked: bool = True
    notes: tuple[str, ...] = ()

    def load_bytes(self, tokens: int) -> int:
        """What one link moves for a prefix of so many tokens."""
        return ceil_div(tokens, self.block_tokens) * self.rank_block_bytes + self.fixed_bytes

    def sequences(self, tokens: int) -> int:
        """Different prefixes of so many tokens that are kept at once."""
        return self.tokens // (ceil_div(tokens, self.block_tokens) * self.block_tokens)

    def to_dict(self) -> dict[str, Any]:
        """Its figures."""
        return asdict(self) | {"notes": list(self.notes)}
