"""Bytes of one sequence as a function of its length, and its inverse.

    bytes(n) = Σ count × layer(n)          a fixed part, slopes, windows where a slope stops, steps

"Bytes per token" exists only where every layer has one slope; elsewhere the marginal cost at a
length is the honest figure.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm

from kvplan.core.formats import Format, Stored
from kvplan.core.layers import Layer
from kvplan.core.units import MAX_TOKENS


@dataclass(frozen=True, slots=True)
class Curve:
    """The cache of one sequence in one storage format."""

    layers: tuple[tuple[Layer, int], ...]
    fmt: Format

    def stored(self, tokens: int) -> Stored:
        """Elements and scales after ``tokens`` tokens."""
        raw = scales = 0
        for layer, count in self.layers:
            part = layer.stored(tokens, self.fmt)
            raw += part[0] * count
            scales += part[1] * count
        return Stored(raw, scales)

    def bytes(self, tokens: int) -> int:
        """Bytes after ``tokens`` tokens, scales included."""
        return self.stored(tokens).total

    @property
    def fixed_bytes(self) -> int:
        """What a sequence keeps whatever its length."""
        return sum(layer.fixed_bytes(self.fmt) * count for layer, count in self.layers)

    @property
    def per_token(self) -> int | None:
        """Bytes a token, or None where no single figure exists."""
        total = 0
        for layer, count in self.layers:
            slope = layer.per_token(self.fmt)
            if slope is None:
                return None
            total += slope * count
        return total

    @property
    def period(self) -> int:
        """Tokens after which the shape of the steps repeats."""
        return lcm(self.fmt.period, *(layer.period for layer, _ in self.layers))

    def marginal(self, tokens: int) -> int:
        """Bytes that one more token adds at this length, on average over one period."""
        period = self.period
        return (self.bytes(tokens + period) - self.bytes(tokens)) // period

    def peak(self, tokens: int) -> int:
        """The most bytes held on the way to ``tokens`` tokens.

        Steps make the curve fall at the end of a period (a group is compressed), so the peak is
        just before the last such fall or at the end.
        """
        if self.period == 1:
            return self.bytes(tokens)
        periods = {self.fmt.period, *(layer.period for layer, _ in self.layers)} - {1}
        falls = {max(0, tokens // period * period - 1) for period in periods}
        return max(map(self.bytes, falls | {tokens}))

    def longest(self, budget_bytes: int, limit: int = MAX_TOKENS) -> int | None:
        """The most tokens of one sequence that fit in ``budget_bytes``; None if not even the fixed
        part does; ``limit`` where the curve stays below the budget for ever.
        """
        if self.peak(0) > budget_bytes or self.fixed_bytes > budget_bytes:
            return None
        low, high = 0, limit
        if self.peak(high) <= budget_bytes:
            return high
        while high - low > 1:
            middle = (low + high) // 2
            if self.peak(middle) <= budget_bytes:
                low = middle
            else:
                high = middle
        return low
