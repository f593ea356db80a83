"""How many tokens of a prompt an engine reuses of the longest beginning that it has seen.

    vllm        full blocks, and never the last token          v1/core/kv_cache_manager.py
    sglang      pages (a token by default), never the last     mem_cache/radix_cache.py
    llama.cpp   the slot whose last prompt is most alike       server-context.cpp
    none        every token that was seen

Each looks one prompt up after the other has been answered, in a pool without end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kvplan.core.errors import BadValue, UnknownName
from kvplan.simulation.prefix.prompts import Prompts
from kvplan.simulation.prefix.tree import common_length
from kvplan.simulation.servers.llamacpp import SIMILARITY

SLOTS = 4  # llama-server's since the end of 2025: -np unset gives four slots
ENGINES = ("vllm", "sglang", "llama.cpp", "none")


@dataclass(frozen=True, slots=True)
class Blocks:
    """Whole blocks of a prompt, at least ``recomputed`` tokens of which are computed again."""

    engine: str
    block_size: int
    recomputed: int
    said: str

    def reused(self, prompts: Prompts, seen: Sequence[int]) -> list[int]:
        """The full blocks within what was seen."""
        return [
            self.tokens(prompts.tokens(units, row.tokens), row.tokens)
            for units, row in zip(seen, prompts.rows, strict=True)
        ]

    def tokens(self, seen: int, prompt: int) -> int:
        """Of one prompt; all of it, its last part of a block too, where all was seen."""
        if not self.recomputed and seen >= prompt:
            return prompt
        most = min(seen, prompt - self.recomputed)
        return max(0, most) // self.block_size * self.block_size


@dataclass(frozen=True, slots=True)
class Slots:
    """Slots that each keep their last prompt, and its answer where that is known."""

    num_slots: int
    engine: str = "llama.cpp"
    block_size: int = 1
    said: str = "llama.cpp reuses the slot whose last prompt is most alike"

    def reused(self, prompts: Prompts, seen: Sequence[int]) -> list[int]:
        """What the chosen slot has of each prompt.

        server-context.cpp get_available_slot: the most alike, if that is more than a tenth of the
        prompt, else the one used longest ago; of either what is alike is kept. Prompts that
        --cache-ram holds in host memory are not looked at.
        """
        nothing = prompts.rows[0].units[:0]
        slots: list[Any] = [nothing] * self.num_slots
        used = [-1] * self.num_slots
        found = []
        for number, row in enumerate(prompts.rows):
            alike = [common_length(kept, row.units) for kept in slots]
            taken = max(range(self.num_slots), key=alike.__getitem__)
            if alike[taken] <= SIMILARITY * len(row.units):
                # The comparison is <=: of several that were never used the last is taken.
                taken = min(reversed(range(self.num_slots)), key=used.__getitem__)
            found.append(min(prompts.tokens(alike[taken], row.tokens), row.tokens - 1))
            slots[taken], used[taken] = row.kept, number
        return found


Rule = Blocks | Slots


def rule_of(engine: str, block_size: int | None, slots: int, natural: int) -> Rule:
    """An engine's rule; ``natural`` is the block that requests of ids are named by, else 1.

    Raises:
        UnknownName: an engine whose reuse is not described.
        BadValue: a block size that the engine cannot have.
    """
    if engine == "vllm":
        return Blocks(
            engine,
            block_size or 16,
            1,
            "vllm reuses full blocks, the last token computed again",
        )
    if engine == "sglang":
        size = block_size or 1
        what = "tokens" if size == 1 else f"full pages of {size} tokens"
        return Blocks(engine, size, 1, f"sglang reuses {what}, the last token computed again")
    if engine == "llama.cpp":
        if block_size not in (None, 1):
            raise BadValue("llama.cpp has no blocks: its slots reuse tokens.", "Drop --block-size.")
        return Slots(slots)
    if engine == "none":
        return Blocks(engine, block_size or natural, 0, "whatever was seen is reused")
    raise UnknownName("engine with a rule of reuse", engine[:40], ENGINES)
