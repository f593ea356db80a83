"""The plan of a llama.cpp server: slots, their cells, and what a sequence holds of a card."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kvplan.core.pool import Pool
from kvplan.core.tier import Tier
from kvplan.core.units import format_bytes
from kvplan.engines.base import Capacity, EnginePlan
from kvplan.engines.llamacpp.caches import Caches, caches_of
from kvplan.engines.llamacpp.layout import Layout
from kvplan.engines.llamacpp.settings import Settings
from kvplan.engines.weights import drawn_share


@dataclass(frozen=True, slots=True, kw_only=True)
class CellPool(Pool):
    """The caches as llama.cpp announces them: cells of one stream, and all layers' K and V.

    ``num_bytes`` is what the fullest card holds of them; ``k_bytes`` and ``v_bytes`` are the
    attention caches of the whole model, ``recurrent_state_bytes`` its states.
    """

    kv_cells: int
    kv_streams: int
    slots: int
    slot_context: int
    k_bytes: int
    v_bytes: int
    window_cells: int | None = None
    recurrent_r_bytes: int = 0
    recurrent_s_bytes: int = 0
    recurrent_state_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LlamaPlan(EnginePlan):
    """What a server on one or more cards holds."""

    layout: Layout

    @property
    def settings(self) -> Settings:
        """The settings that it starts with."""
        return self.layout.request.settings

    def capacity(self, context: int) -> Capacity:
        """Slots whose sequences can be so long at once."""
        settings = self.settings
        if not self.starts:
            return Capacity(0, "memory")
        if context > settings.slot_context:
            return Capacity(0, "--ctx-size")
        if not settings.unified:
            return Capacity(settings.slots, "--parallel")
        held = settings.cells // max(context, 1)
        return Capacity(
            min(held, settings.slots), "pool" if held < settings.slots else "--parallel"
        )

    def longest(self, sequences: int) -> int:
        """A slot's cells; of a shared cache an even part."""
        settings = self.settings
        if sequences > settings.slots:
            return 0
        cells = settings.slot_context // (sequences if settings.unified else 1)
        return min(cells, self.model.max_context_tokens or cells)

    def sequence_bytes(self, context: int) -> int:
        """The cells that a sequence of so many tokens needs on the fullest card, and its state."""
        part = self.layout.fullest.part
        return self._alone(context).between(part.first, part.end)

    def _alone(self, context: int) -> Caches:
        """The caches of one sequence of so many tokens."""
        alone = replace(
            self.settings,
            slots=1,
            unified=False,
            context=max(1, context),
            batch=min(self.settings.batch, max(1, context)),
            ubatch=min(self.settings.ubatch, max(1, context)),
        )
        return caches_of(self.layout.request.geometry, alone)

    def read_bytes(self, context: int, sequences: int) -> int:
        """Each sequence's cells, once."""
        return sequences * self.sequence_bytes(context)

    @property
    def tiers(self) -> tuple[Tier, ...]:
        """The server's prompt cache: sequences that left their slot, as long as the context asked.

        tools/server/server-task.cpp, server_prompt_cache (b11434).
        """
        size = next((t.num_bytes for t in self.ledger if t.name == "host_prompt_cache"), 0)
        if not size:
            return ()
        context = self.asked.context
        each = self._alone(context).num_bytes
        kept = size // each if each else 0
        said = f"{kept:,} sequences of {context:,} tokens at {each:,} B in all layers"
        return (
            Tier(
                name="prompt_cache",
                rank_bytes=size,
                host_bytes=size,
                ranks=1,
                block_tokens=context,
                rank_block_bytes=each,
                tokens=kept * context,
                source=f"--cache-ram: {said}",
                asked="--cache-ram" in self.asked.flags,
                notes=("At most: it fills as conversations leave their slots.",),
            ),
        )

    @property
    def weights_read_bytes(self) -> int:
        """The fullest card's blocks and output; of experts there those that one token draws.

        What is in host memory is read too, at the host's pace, which is not counted.
        """
        request, card = self.layout.request, self.layout.fullest
        on_host = range(min(request.experts, request.geometry.layers))
        here = range(max(card.part.first, on_host.stop), card.part.end)
        experts = sum(request.buffers.parts.experts[il] for il in here)
        held = request.buffers.held(card.part, on_host)
        idle = experts / held * (1 - drawn_share(self.model)) if held else 0.0
        return int(card.weights * (1 - idle))

    def shortfall(self, context: int, sequences: int) -> str | None:
        """Slots, or cells, that were not asked for: the cards may well have room for them."""
        settings = self.settings
        if sequences > settings.slots:
            said = f"and there are {settings.slots}"
            return f"{sequences:,} sequences at once need as many slots, {said}."
        if settings.unified:
            return (
                f"{sequences:,} × {context:,} tokens need {sequences * context:,} cells, and the "
                f"slots share {settings.cells:,}."
            )
        return f"{context:,} tokens need as many cells, and a slot has {settings.slot_context:,}."

    def explain(self, context: int) -> list[str]:
        """Cells, streams and bytes of every cache."""
        settings = self.settings
        shared = "share them" if settings.unified else "have them to themselves"
        cells = f"{settings.cells:,} cells × {settings.streams} streams"
        return [
            f"{cells}; {settings.slots} slots {shared}",
            *(
                f"{cache.name}: {cache.layers} layers, {cache.cells:,} cells × {cache.streams}: "
                f"{cache.k_bytes:,} B of K and {cache.v_bytes:,} B of V "
                f"= {format_bytes(cache.num_bytes)}"
                for cache in self.layout.caches.announced()
            ),
        ]
