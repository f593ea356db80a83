"""Latent attention over a window, and the indexer keys of a layer that borrows its latent rows.

Both belong with ``kvplan.core.layers``: the same questions, for shapes that few models have.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kvplan.core.formats import Format, Stored
from kvplan.core.latent import LatentAttention
from kvplan.core.layers import SharedCache, SlidingWindow, index_keys, mean_slope


@dataclass(frozen=True, slots=True, kw_only=True)
class SlidingLatentAttention(LatentAttention):
    """Latent attention over the last ``size`` tokens, of which ``size - 1`` stay between steps."""

    size: int

    kind: ClassVar[str] = "sliding_window"

    def stored(self, tokens: int, fmt: Format) -> Stored:
        """The latent rows of the kept tokens."""
        return fmt.keys(min(tokens, self.size - 1), 1, self.rank + self.rope_dim)

    def per_token(self, fmt: Format) -> int | None:
        """None: the cost stops at the window."""
        return None

    @property
    def window(self) -> int | None:
        """The window in tokens."""
        return self.size

    def multi_head(self) -> SlidingWindow:
        """A key and a value for each head, over the same window."""
        return SlidingWindow(
            kv_heads=self.query_heads,
            key_dim=self.head_key_dim,
            value_dim=self.head_value_dim,
            query_heads=self.query_heads,
            size=self.size,
        )

    def formula(self, fmt: Format) -> str:
        """The row and where it stops."""
        return (
            f"({self.rank} latent + {self.rope_dim} rotary) elements in {fmt.name}, "
            f"for the last {self.size - 1:,} tokens"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedLatentIndex(SharedCache):
    """A layer that reads the latent rows of an earlier one and keeps its own indexer's keys."""

    index_dim: int
    index_bytes: int = 0

    def stored(self, tokens: int, fmt: Format) -> Stored:
        """The indexer's keys alone."""
        return index_keys(tokens, self.index_dim, self.index_bytes, fmt)

    def per_token(self, fmt: Format) -> int | None:
        """The slope."""
        return mean_slope(self, fmt) if fmt.linear else None

    def formula(self, fmt: Format) -> str:
        """The indexer's key."""
        return (
            f"{self.index_dim} indexer elements in {fmt.name} = {mean_slope(self, fmt):,} B a "
            f"token: reads the {self.source.replace('_', ' ')} of an earlier layer"
        )
