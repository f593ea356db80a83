"""A batch of ``generate`` on a card: nothing is admitted or refused, it fits or it fails."""

from __future__ import annotations

from dataclasses import dataclass

from kvplan.core.units import MAX_TOKENS
from kvplan.engines.base import Capacity, EnginePlan
from kvplan.engines.demand import UNBOUNDED
from kvplan.engines.transformers.caches import SequenceCache
from kvplan.engines.weights import RankWeights, read_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformersPlan(EnginePlan):
    """``room`` bytes of a rank are left to caches and to the activations of a batch's prefill."""

    cache: SequenceCache
    room: int
    new_tokens: int
    activation_bytes: int  # of one token of a prompt, at least
    weights: RankWeights

    @property
    def weights_read_bytes(self) -> int:
        """The rank's tensors without what is looked up."""
        return read_bytes(self.model, self.weights)

    def needed(self, context: int) -> int:
        """Bytes that one sequence takes on its way to so many tokens, activations included."""
        prompt = max(1, context - self.new_tokens)
        prefill = self.cache.after_prefill(prompt) + prompt * self.activation_bytes
        last = self.cache.kept(context) + self.cache.working(context) + self.activation_bytes
        return max(prefill, last)

    def capacity(self, context: int) -> Capacity:
        """The largest batch."""
        if not self.starts:
            return Capacity(0, "memory")
        each = self.needed(context)
        return Capacity((self.room // each if each else UNBOUNDED) * self.replicas, "memory")

    def longest(self, sequences: int) -> int:
        """The longest context of a batch of so many."""
        share = self.room // -(-sequences // self.replicas)
        low, high = 0, min(self.model.max_context_tokens or MAX_TOKENS, MAX_TOKENS)
        if not self.starts or self.needed(1) > share:
            return 0
        while low < high:
            middle = (low + high + 1) // 2
            if self.needed(middle) <= share:
                low = middle
            else:
                high = middle - 1
        return low

    def sequence_bytes(self, context: int) -> int:
        """The most that its cache holds on the card."""
        return self.cache.peak(max(1, context - self.new_tokens), context)

    def read_bytes(self, context: int, sequences: int) -> int:
        """Each cache, once; a static one with all that it reserves."""
        return self.cache.read(context) * sequences
