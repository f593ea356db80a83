"""What SGLang sets aside for answers, and what one prefill batch may take of the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kvplan.core.units import round_up
from kvplan.simulation.servers.base import Request

# schedule_policy.py: CLIP_MAX_NEW_TOKENS; environ.py, all SGLANG_…: INIT_NEW_TOKEN_RATIO,
# MIN_NEW_TOKEN_RATIO_FACTOR, NEW_TOKEN_RATIO_DECAY_STEPS, RETRACT_DECODE_STEPS.
CLIP: Final = 4096
FIRST_RATIO: Final = 0.7
LEAST_FACTOR: Final = 0.14
DECAY_STEPS: Final = 600
RETRACT_STEPS: Final = 20


class Ratio:
    """new_token_ratio: which share of the answers still to come is set aside at admission."""

    def __init__(self, conservativeness: float) -> None:
        self.first = min(FIRST_RATIO * conservativeness, 1.0)
        self.least = min(self.first * LEAST_FACTOR, 1.0)
        self.now = self.first

    def decay(self) -> None:
        """After a decode step without a retraction."""
        self.now = max(self.now - (self.first - self.least) / DECAY_STEPS, self.least)

    def idle(self) -> None:
        """Where there is nothing to run (Scheduler.self_check_during_idle)."""
        self.now = self.first

    def retracted(self, left: Sequence[Request]) -> None:
        """After one, from the requests that stay."""
        out = sum(request.generated for request in left)
        asked = sum(request.output for request in left)
        self.now = min(1.0, (out + RETRACT_STEPS * len(left)) / (asked + 1))


@dataclass(slots=True, kw_only=True)
class Budget:
    """What one prefill batch may still take (PrefillAdder): room for tokens, and its own size."""

    room: float
    input_tokens: int
    chunk_tokens: int | None

    def spend(self, extend: int, new: int, page: int) -> None:
        """One request more: its chunk, its answer, a page for rounding."""
        extend = round_up(extend, page)
        self.room -= extend + new + page
        self.input_tokens -= extend
        if self.chunk_tokens is not None:
            self.chunk_tokens -= extend

    @property
    def spent(self) -> bool:
        """Whether no further request can join the batch."""
        full = self.chunk_tokens is not None and self.chunk_tokens <= 0
        return self.input_tokens <= 0 or full
