"""What the blocks hold. The scheduler starts a request only if it can finish."""

from __future__ import annotations

from dataclasses import dataclass

from kvplan.core.units import ceil_div
from kvplan.engines.base import Capacity, EnginePlan
from kvplan.engines.demand import UNBOUNDED
from kvplan.engines.tensorrt_llm.blocks import WindowPool, blocks_of
from kvplan.engines.tensorrt_llm.cells import Cells
from kvplan.engines.tensorrt_llm.settings import Settings
from kvplan.engines.weights import RankWeights, read_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorRTPlan(EnginePlan):
    """A start of TensorRT-LLM, GUARANTEED_NO_EVICT: blocks of the whole request are reserved."""

    settings: Settings
    cells: Cells
    pools: tuple[WindowPool, ...]
    weights: RankWeights

    @property
    def weights_read_bytes(self) -> int:
        """The rank's tensors without what is looked up."""
        return read_bytes(self.model, self.weights)

    def capacity(self, context: int) -> Capacity:
        """Whole requests in every pool, up to the batch."""
        if not self.starts:
            return Capacity(0, "memory")
        if context > self.settings.max_seq_len:
            return Capacity(0, "max_seq_len")
        in_pool = min((self._in_pool(context, pool) for pool in self.pools), default=UNBOUNDED)
        batch = self.settings.max_batch
        if in_pool < batch:
            return Capacity(in_pool * self.replicas, "pool")
        return Capacity(batch * self.replicas, "max_batch_size")

    def _in_pool(self, context: int, pool: WindowPool) -> int:
        shared = min(self.asked.shared_prefix, context) // self.settings.block
        own = blocks_of(context, pool, self.settings) - shared
        return max(0, pool.blocks - shared) // own if own > 0 else UNBOUNDED

    def longest(self, sequences: int) -> int:
        """The blocks shared evenly, up to the longest request."""
        each = ceil_div(sequences, self.replicas) * self.settings.beams
        if not self.starts or each > self.settings.max_batch * self.settings.beams:
            return 0
        found = self.settings.max_seq_len
        for pool in self.pools:
            tokens = pool.blocks // each * self.settings.block
            if tokens < pool.window:
                found = min(found, tokens)
        return found

    def sequence_bytes(self, context: int) -> int:
        """Blocks of every pool, and the state."""
        block = self.settings.block
        held = sum(
            blocks_of(context, pool, self.settings) * block * pool.token_bytes
            for pool in self.pools
        )
        return held + self.cells.state_bytes

    def read_bytes(self, context: int, sequences: int) -> int:
        """Every token within each window, and the states."""
        tokens = sum(min(context, pool.window) * pool.token_bytes for pool in self.pools)
        return sequences * (tokens + self.cells.state_bytes)
