"""What was measured of one engine on one card, as the coefficients of a step's cost.

    decode step    fixed + batch × (sequence + read × context)
    prefill        fixed + token × length + pair × pairs(length)

``fixed`` is the weights' bytes at the rate that was reached, ``read`` the cache's: on the same card
and engine another model's are theirs times its own bytes over the measured ones.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final, NamedTuple

from kvplan.core.step import AttentionCost, Chunk, Knot, StepCost, pairs

LEAST_ERROR: Final = 0.05  # a repeated run differs by so much
OTHER_MODEL: Final = 0.15  # added for bytes that stand for another model's kernels
LONG: Final = 1 << 16  # tokens of a step to which the cost of new tokens is a straight line


@dataclass(frozen=True, slots=True, kw_only=True)
class Decode:
    """Seconds of decode steps; ``error`` is the largest relative one of the points they are of."""

    fixed_s: float
    sequence_s: float
    read_s: float
    error: float

    def seconds(self, batch: float, context: float) -> float:
        """A step of ``batch`` sequences that see ``context`` tokens each."""
        return self.fixed_s + batch * (self.sequence_s + self.read_s * context)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefill:
    """Seconds of a prompt on top of a step's fixed cost."""

    token_s: float
    pair_s: float
    error: float

    def seconds(self, tokens: int) -> float:
        """Of a prompt that is computed whole."""
        return self.token_s * tokens + self.pair_s * pairs(Chunk(0, tokens), None)


class Reads(NamedTuple):
    """What a decode step reads of one rank: the weights, and a token of one sequence's cache."""

    weights_bytes: int
    token_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """A server's coefficients: of an engine on a card (None: the machine's CPU) with one model.

    ``most_batch`` is the largest batch that was measured: up to it the new tokens of a step are in
    ``sequence``, beyond it each takes what a prompt's does. ``bandwidth`` is the memory's, in bytes
    a second, where it was measured too.
    """

    engine: str | None
    version: str | None
    model: str
    card: str | None
    decode: Decode
    prefill: Prefill | None
    reads: Reads | None
    most_batch: int = 1
    bandwidth: int | None = None
    decode_points: tuple[tuple[float, float, float], ...] = ()
    prefill_points: tuple[tuple[int, float], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self) | {
            "reads": self.reads._asdict() if self.reads else None,
            "decode_points": [list(point) for point in self.decode_points],
            "prefill_points": [list(point) for point in self.prefill_points],
        }

    @property
    def source(self) -> str:
        """What was measured, in words."""
        version = f" {self.version}" if self.version else ""
        return f"measured: {self.engine}{version} with {self.model}"

    def cost(self, own: Reads) -> StepCost:
        """The cost of a step that reads ``own``."""
        seen = self.reads or own
        weights = own.weights_bytes / seen.weights_bytes
        cache = own.token_bytes / seen.token_bytes
        token = self.prefill.token_s * weights if self.prefill else 0.0
        pair = self.prefill.pair_s * cache if self.prefill else 0.0
        return StepCost(
            fixed_s=self.decode.fixed_s * weights,
            sequence_s=self.decode.sequence_s * weights,
            linear=(
                Knot(self.most_batch, 0.0),
                Knot(2 * self.most_batch, 2 * self.most_batch * token),
                Knot(LONG, token * LONG),
            ),
            attention=(AttentionCost(window=None, read_s=self.decode.read_s * cache, pair_s=pair),),
            source=self.source,
        )

    def error(self, own: Reads) -> float:
        """The relative half width of the band of what reads ``own``."""
        prefill = self.prefill.error if self.prefill else 0.0
        seen = max(self.decode.error, prefill, LEAST_ERROR)
        return seen if self.reads == own else seen + OTHER_MODEL
