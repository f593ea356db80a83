"""What two prompts have in common after they part: runs of equal units, in the same order in both.

    a   [ system ][ 09:15 ][ handbook ......... ][ question A ]
    b   [ system ][ 11:02 ][ handbook ......... ][ question B, longer ]
          run                  run

Every window of ``span`` units of one is hashed; the other is walked, and each window that is found
is extended as far as both agree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from kvplan.simulation.prefix.tree import common_length

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Units = NDArray[Any]
    Hashes = NDArray[np.uint64]

MOST_RUNS = 256  # of one pair of prompts
FACTOR = 0x9E3779B97F4A7C15


class Run(NamedTuple):
    """``length`` units that are equal from ``a`` in one prompt and from ``b`` in the other."""

    a: int
    b: int
    length: int


def windows(units: Units, span: int) -> Hashes:
    """A hash of every window of ``span`` units, a power of two; none of a shorter prompt."""
    import numpy as np

    if len(units) < span:
        return np.empty(0, np.uint64)
    # Windows of twice the length from two of half of it, each length with a factor of its own.
    hashes = (units.astype(np.uint64) + np.uint64(1)) * np.uint64(FACTOR)
    hashes ^= hashes >> np.uint64(29)
    size = 1
    while size < span:
        factor = np.uint64((FACTOR * (2 * size + 1)) & ((1 << 64) - 1) | 1)
        hashes = hashes[: len(hashes) - size] * factor + hashes[size:]
        hashes ^= hashes >> np.uint64(31)
        size *= 2
    return hashes


class Landmarks:
    """The windows of one prompt, to align others with it."""

    def __init__(self, units: Units, span: int) -> None:
        import numpy as np

        self.units, self.span = units, span
        hashes = windows(units, span)
        self._places = np.argsort(hashes, kind="stable")
        self._sorted = hashes[self._places]

    def align(self, other: Units, a: int = 0, b: int = 0) -> list[Run]:
        """Runs from these places on, each of at least ``span`` units, rising in both."""
        import numpy as np

        hashes = windows(other[b:], self.span)
        low = np.searchsorted(self._sorted, hashes, "left")
        high = np.searchsorted(self._sorted, hashes, "right")
        places = np.flatnonzero(low < high)
        runs: list[Run] = []
        index = 0
        while index < len(places) and len(runs) < MOST_RUNS:
            at = int(places[index])
            start = self._first(int(low[at]), int(high[at]), a)
            length = 0 if start is None else common_length(self.units[start:], other[b + at :])
            if start is None or length < self.span:
                index += 1
                continue
            runs.append(Run(start, b + at, length))
            a = start + length
            index = int(np.searchsorted(places, at + length))
        return runs

    def _first(self, low: int, high: int, least: int) -> int | None:
        """The first place from ``least`` on, of equal windows."""
        import numpy as np

        own = self._places[low:high]
        place = int(np.searchsorted(own, least))
        return int(own[place]) if place < len(own) else None
