"""Attention of which some or all layers look back over a window: Gemma 2 and 3, Mistral, ….

A family derives the kind of each layer where the file has no ``layer_types``.
"""

from __future__ import annotations

from kvplan.core.stack import Stack
from kvplan.readers.config import Config
from kvplan.readers.families.base import Decoder, Mixer, layer_kinds

SLIDING, FULL = "sliding_attention", "full_attention"


class Windowed(Decoder):
    """A decoder whose layers are named full or sliding; ``derive`` names them where absent."""

    def mixers(self, c: Config) -> Stack[Mixer]:
        """One mixer a kind."""
        count = self.depth(c)
        kinds = layer_kinds(c, count, self.derive(c, count))
        found = {FULL: self.attention(c), SLIDING: self.attention(c, self.window(c))}
        return Stack.named(kinds, found)

    def window(self, c: Config) -> int | None:
        """The window in tokens; None where the config switches it off."""
        return c.whole("sliding_window") if c.has("sliding_window") else None

    def derive(self, c: Config, count: int) -> list[str]:
        """The kinds of ``count`` layers as the config class derives them."""
        raise NotImplementedError


class Gemma2(Windowed):
    """Windows on every other layer, four norms a block."""

    norms = 4

    def derive(self, c: Config, count: int) -> list[str]:
        """Sliding first (transformers 5.24.0, models/gemma2/configuration_gemma2.py)."""
        return [SLIDING if (place + 1) % 2 else FULL for place in range(count)]


class Gemma3(Windowed):
    """Five windows, then a full layer; norms of queries and keys."""

    norms = 4
    qk_norm = "head"

    def derive(self, c: Config, count: int) -> list[str]:
        """Every sixth layer is full (models/gemma3/configuration_gemma3.py)."""
        pattern = c.whole("sliding_window_pattern", 6)
        return [SLIDING if (place + 1) % pattern else FULL for place in range(count)]

    def window(self, c: Config) -> int | None:
        """Halved and one more where attention is bidirectional (same file, __post_init__)."""
        window = super().window(c)
        if window is not None and c.flag("use_bidirectional_attention"):
            return window // 2 + 1
        return window
