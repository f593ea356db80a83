"""Caches of hidden states: keys and values are made of them again at every step.

What XLNet and Reformer keep instead of keys and values, in the types their code fixes; and
attention behind a learned prompt, which is in the cache before the first token.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kvplan.core.formats import Format, Stored
from kvplan.core.layers import INT64_BYTES, FullAttention, Layer


@dataclass(frozen=True, slots=True, kw_only=True)
class HiddenStates(Layer):
    """The layer's input of every token: ``width`` elements of ``element_bytes``."""

    width: int
    element_bytes: int

    kind: ClassVar[str] = "full_attention"

    def stored(self, tokens: int, fmt: Format) -> Stored:
        """One row a token, whatever the format."""
        return Stored(tokens * self.width * self.element_bytes)

    def per_token(self, fmt: Format) -> int | None:
        """One row."""
        return self.width * self.element_bytes

    def formula(self, fmt: Format) -> str:
        """Width × bytes."""
        return f"the layer's input: {self.width} × {self.element_bytes} B a token"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentStates(HiddenStates):
    """The inputs of the last ``size`` tokens (XLNet's memory)."""

    size: int

    kind: ClassVar[str] = "sliding_window"

    def stored(self, tokens: int, fmt: Format) -> Stored:
        """At most ``size`` rows."""
        return Stored(min(tokens, self.size) * self.width * self.element_bytes)

    def per_token(self, fmt: Format) -> int | None:
        """None: the cost stops at the memory's end."""
        return None

    @property
    def window(self) -> int | None:
        """The tokens of the memory."""
        return self.size


@dataclass(frozen=True, slots=True, kw_only=True)
class HashedStates(HiddenStates):
    """The inputs and, of a text longer than a ``chunk``, the ``hashes`` of each token.

    Hashes are 64-bit integers, one a head and round of hashing (Reformer's LSH attention).
    """

    hashes: int
    chunk: int

    def stored(self, tokens: int, fmt: Format) -> Stored:
        """One row a token, and its hashes."""
        hashes = self.hashes * INT64_BYTES if tokens > self.chunk else 0
        return Stored(tokens * (self.width * self.element_bytes + hashes))

    def per_token(self, fmt: Format) -> int | None:
        """None: hashing starts with the second chunk."""
        return None

    def formula(self, fmt: Format) -> str:
        """Width × bytes and the hashes."""
        return (
            f"the layer's input: {self.width} × {self.element_bytes} B a token, "
            f"and beyond {self.chunk} tokens {self.hashes} hashes of {INT64_BYTES} B"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptedAttention(FullAttention):
    """Full attention behind a learned prompt of ``prompt`` tokens (CPM-Ant)."""

    prompt: int

    def kept_tokens(self, tokens: int) -> int:
        """The text and the prompt."""
        return self.prompt + tokens
