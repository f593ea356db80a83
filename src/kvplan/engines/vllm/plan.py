"""vLLM's plan of a model on a node: what its pool holds, counted in blocks."""

from __future__ import annotations

from dataclasses import dataclass

from kvplan.core.latent import IndexedLatentAttention
from kvplan.core.layers import FullAttention, Layer
from kvplan.core.model import Model
from kvplan.core.states import RecurrentState
from kvplan.core.tier import Tier
from kvplan.core.units import MAX_TOKENS
from kvplan.core.version import Version
from kvplan.engines.base import Capacity, EnginePlan
from kvplan.engines.vllm.admission import longest_that_fits
from kvplan.engines.vllm.cells import element_bytes
from kvplan.engines.vllm.groups import CacheGroup
from kvplan.engines.vllm.memory.ledger import offloaded, rank_weights_of
from kvplan.engines.vllm.offload import tiers_of
from kvplan.engines.vllm.rules import NEWEST, rules_of
from kvplan.engines.vllm.settings import Settings
from kvplan.engines.vllm.specs import FullSpec, Request, RingSpec, StateSpec
from kvplan.engines.weights import read_bytes

UNBOUNDED = 1 << 40  # sequences of a cache that takes no block


@dataclass(frozen=True, slots=True, kw_only=True)
class VllmPlan(EnginePlan):
    """Groups that draw from one pool of ``usable_blocks``.

    A running sequence holds the blocks of its tokens, of its windows and of its states. One that
    enters needs more at once, while its prompt is in flight; so N fit where N - 1 that decode leave
    room for one that enters.
    """

    settings: Settings
    groups: tuple[CacheGroup, ...]
    request: Request
    usable_blocks: int
    bytes_per_block: int

    @property
    def max_len(self) -> int:
        """The longest sequence that this start takes."""
        return self.request.max_len

    def held_blocks(self, tokens: int) -> int:
        """Blocks of a sequence of so many tokens while it decodes, beyond what is shared."""
        return sum(group.held(tokens, self.request) for group in self.groups) - self.shared_blocks(
            tokens
        )

    def entering_blocks(self, tokens: int) -> int:
        """Blocks of a sequence of so many tokens while its prompt is in flight."""
        request = self.request._replace(max_len=tokens)
        return sum(group.blocks(request) for group in self.groups) - self.shared_blocks(tokens)

    def shared_blocks(self, tokens: int) -> int:
        """Whole blocks of the prefix that all sequences share; windows and states are their own."""
        prefix = min(self.asked.shared_prefix, tokens - 1)
        if prefix <= 0 or not self.settings.prefix_caching:
            return 0
        return sum(
            prefix // (group.spec.block_size * self.request.dcp)
            for group in self.groups
            if isinstance(group.spec, FullSpec)
        )

    def capacity(self, context: int) -> Capacity:
        """By blocks, by ``--max-num-seqs``, by the longest length; none where it does not start."""
        if not self.starts:
            return Capacity(0, "max_model_len" if self.usable_blocks else "pool")
        if context > self.max_len:
            return Capacity(0, "max_model_len")
        fitting = self._fitting(context)
        if fitting >= self.settings.max_seqs:
            return Capacity(self.settings.max_seqs * self.replicas, "max_num_seqs")
        return Capacity(fitting * self.replicas, self._scarce(context))

    def _fitting(self, context: int) -> int:
        """Sequences of one replica that fit by blocks."""
        free = self.usable_blocks - self.shared_blocks(context)
        entering, held = self.entering_blocks(context), self.held_blocks(context)
        if free < entering:
            return 0
        return 1 + (free - entering) // held if held > 0 else UNBOUNDED

    def _scarce(self, context: int) -> str:
        """``state`` where a sequence's states take more blocks than its tokens, else ``pool``."""
        held = [(group, group.held(context, self.request)) for group in self.groups]
        states = sum(n for group, n in held if isinstance(group.spec, StateSpec | RingSpec))
        return "state" if 2 * states > sum(n for _, n in held) else "pool"

    def longest(self, sequences: int) -> int:
        """The most tokens of each; no more than the start takes."""
        each = -(-sequences // self.replicas)
        if each > self.settings.max_seqs:
            return 0
        return longest_that_fits(
            lambda tokens: each if self._fitting(tokens) < each else 0, 0, self.max_len
        )

    def sequence_bytes(self, context: int) -> int:
        """Its blocks while it decodes."""
        return self.held_blocks(context) * self.bytes_per_block

    def read_bytes(self, context: int, sequences: int) -> int:
        """What attention looks at and the states, once each; of a stage its share of the layers."""
        layout = self.settings.layout
        each = sum(
            layer_read_bytes(layer, context, self.model, self.settings) * count
            for layer, count in self.model.layers()
        )
        return each * sequences // (layout.pp * layout.dcp)

    @property
    def tiers(self) -> tuple[Tier, ...]:
        """The KV offload of vLLM itself, and LMCache."""
        return tiers_of(self, self.settings.connectors, rules_of(self.version or NEWEST))

    @property
    def weights_read_bytes(self) -> int:
        """The rank's tensors without what is looked up; nothing where they are unknown."""
        version = Version.parse(self.version or NEWEST)
        weights_bytes = self.asked.weights_bytes
        rank = rank_weights_of(self.model, self.node, self.launch, version, weights_bytes)
        if rank is None:
            return 0
        away = offloaded(rank, self.settings.flags.get("--cpu-offload-gb", 0))
        return max(0, read_bytes(self.model, rank) - away)

    def explain(self, context: int) -> list[str]:
        """The blocks of each group, and of a sequence over all of them."""
        counts: dict[str, int] = {}
        for group in self.groups:
            said = self._group_line(group, context)
            counts[said] = counts.get(said, 0) + 1
        lines = [f"  {count} × {said}" for said, count in counts.items()]
        lines.append(
            f"  A block takes {self.bytes_per_block:,} B of the pool whichever group has it: "
            f"{self.pool.num_bytes:,} ÷ {self.bytes_per_block:,} = {self.pool.num_blocks:,} blocks."
        )
        return lines

    def _group_line(self, group: CacheGroup, context: int) -> str:
        return (
            f"a group of {group.layers} × {group.spec.kind.replace('_', ' ')}: blocks of "
            f"{group.spec.block_size:,} tokens, {group.block_bytes():,} B on the first stage; "
            f"{group.held(context, self.request):,} while a sequence decodes, "
            f"{group.blocks(self.request):,} at the longest with its prompt in flight"
        )


def layer_read_bytes(layer: Layer, context: int, model: Model, settings: Settings) -> int:
    """Bytes of one layer on one rank that a decode step of one sequence reads at least."""
    shared = layer.on_rank(settings.layout.tp)
    width = element_bytes(settings.kv_dtype, settings.model_bytes)
    seen = min(context, layer.window or MAX_TOKENS)
    if isinstance(shared, RecurrentState):
        return sum(tensor.num_bytes for tensor in shared.tensors)
    if isinstance(shared, IndexedLatentAttention):
        picked = min(seen, model.traits.index_topk or seen)
        return picked * (shared.rank + shared.rope_dim) * width + seen * shared.index_dim
    if isinstance(shared, FullAttention):
        return seen * shared.kv_heads * (shared.key_dim + shared.value_dim) * width
    heads, key, value = shared.heads or 0, shared.key_width or 0, shared.value_width or 0
    return seen * heads * (key + value) * width
