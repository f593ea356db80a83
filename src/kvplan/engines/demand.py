"""How many sequences a pool holds, and how long one of them can be."""

from __future__ import annotations

from dataclasses import dataclass

from kvplan.core.curve import Curve
from kvplan.core.units import MAX_TOKENS

UNBOUNDED = 1 << 40  # sequences of a cache that takes no bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What each sequence asks of a pool: its length, and the part that all share.

    ``shared`` is kept once. Only keys and values of every token can be shared; windows and states
    belong to one sequence.
    """

    curve: Curve
    context: int
    shared_prefix: int = 0

    @property
    def shared_bytes(self) -> int:
        """The prefix, kept once for all."""
        prefix, fmt = min(self.shared_prefix, self.context), self.curve.fmt
        if not prefix:
            return 0
        return sum(
            layer.stored(prefix, fmt).total * count
            for layer, count in self.curve.layers
            if layer.per_token(fmt)
        )

    @property
    def own_bytes(self) -> int:
        """The most that one sequence holds beyond the shared part on its way to the context."""
        return self.curve.peak(self.context) - self.shared_bytes

    def sequences(self, pool_bytes: int) -> int:
        """Whole sequences that fit."""
        left = pool_bytes - self.shared_bytes
        if left < 0:
            return 0
        return left // self.own_bytes if self.own_bytes > 0 else UNBOUNDED

    def resident_bytes(self, sequences: int) -> int:
        """Bytes that so many sequences hold at their full length."""
        return self.shared_bytes + sequences * self.own_bytes


def longest_context(curve: Curve, pool_bytes: int, sequences: int, limit: int | None) -> int:
    """The most tokens that each of ``sequences`` can have; 0 where not even the fixed part fits."""
    most = curve.longest(max(0, pool_bytes) // sequences, min(limit or MAX_TOKENS, MAX_TOKENS))
    return most or 0
