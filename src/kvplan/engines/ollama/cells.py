"""The caches of Ollama's own engine (kvcache/causal.go, 0.13.0): one for all slots, no streams.

    every token    slots × context cells
    windows        slots × memory + batch, the memory being the window, or 4096 for gpt-oss and
                   Gemma 4; with several slots a token more than the window

Cells are rounded up to 256 with flash attention, to 32 without.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kvplan.core.units import round_up
from kvplan.engines.llamacpp.settings import Settings

# kvcache.NewSWAMemCache in model/models (0.20.0).
LONG_MEMORY: Final = frozenset({"gpt_oss", "gpt-oss", "gptoss", "gemma4", "gemma4_text"})
MEMORY: Final = 4096
# Models that its own engine ran while others were left to llama.cpp (model/models, 0.6 to 0.11).
OWN_ENGINE: Final = frozenset({
    "gemma3", "gemma3_text", "gemma3n", "gemma3n_text", "llama4", "llama4_text", "mistral3",
    "mllama", "qwen25vl", "qwen2_5_vl", "gptoss", "gpt-oss", "gpt_oss",
})  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings(Settings):
    """Settings whose windows are those of Ollama's engine; ``context`` counts all slots."""

    memory: int = 0

    @property
    def window_cache(self) -> bool:
        """Windows have cells of their own."""
        return True

    def window_cells(self, window: int) -> int:
        """Cells of all slots in the layers that look back ``window`` tokens."""
        memory = max(self.memory, window)
        if self.slots > 1:
            memory = max(memory, window + 1)
        if memory >= self.context // self.slots:
            return self.cells
        return round_up(self.slots * memory + self.ubatch, self.padding)
