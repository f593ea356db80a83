"""Decoders whose blocks differ in what they keep: keys and values in some, a state in others."""

from __future__ import annotations

from collections.abc import Sequence

from kvplan.core import weights as w
from kvplan.core.stack import Stack
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import (
    FULL,
    SLIDING,
    Decoder,
    Heads,
    Mixer,
    Weights,
    layer_kinds,
)

LINEAR = "linear_attention"
HYBRID = "hybrid"
HYBRID_SLIDING = "hybrid_sliding"


class Hybrid(Decoder):
    """A decoder whose blocks are named; ``known`` are the names there may be.

    Blocks named ``full_attention`` and ``sliding_attention`` are attention, all others ``state``.
    ``gated_queries`` is for attention whose query projection also gives a gate of its width.
    """

    known: Sequence[str] = (LINEAR, FULL)
    gated_queries: bool = False

    def mixers(self, c: Config) -> Stack[Mixer]:
        """One mixer a kind of block."""
        kinds = self.kinds(c, self.depth(c))
        return Stack.named(kinds, {kind: self.mixer(c, kind) for kind in dict.fromkeys(kinds)})

    def kinds(self, c: Config, count: int) -> list[str]:
        """The kind of each block: as the file names them, else as the config class derives them."""
        derived = None if c.has("layer_types") else self.derive(c, count)
        return layer_kinds(c, count, derived, known=self.known)

    def mixer(self, c: Config, kind: str) -> Mixer:
        """The mixer of a kind of block."""
        if kind == FULL:
            return self.attention(c)
        if kind == SLIDING:
            return self.attention(c, self.window(c))
        return self.state(c)

    def state(self, c: Config) -> Mixer:
        """The mixer of the blocks that keep a state."""
        raise NotImplementedError

    def attention_weights(self, c: Config, heads: Heads) -> Weights:
        """Projections and norms, with the queries' gate."""
        found = super().attention_weights(c, heads)
        if self.gated_queries:
            bias = self.says(c, self.attention_bias)
            found += parts.linear(w.QUERY, self.hidden(c), heads.query * heads.key_dim, bias)
        return found


def every(interval: int, count: int, kind: str = FULL, other: str = LINEAR) -> list[str]:
    """``kind`` in each ``interval``-th of ``count`` blocks, ``other`` in the rest."""
    return [other if (place + 1) % interval else kind for place in range(count)]
