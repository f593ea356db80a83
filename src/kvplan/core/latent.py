"""Latent attention: one compressed vector a token, whatever the number of heads."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from kvplan.core.formats import Format, Stored
from kvplan.core.layers import FullAttention, Layer, index_keys, mean_slope
from kvplan.core.units import ceil_div


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentAttention(Layer):
    """Multi-head latent attention: one compressed vector and one rotary key a token.

    ``rank + rope_dim`` elements, whatever the number of heads.
    """

    rank: int
    rope_dim: int
    query_heads: int
    head_key_dim: int
    head_value_dim: int

    kind: ClassVar[str] = "latent_attention"

    def stored(self, tokens: int, fmt: Format) -> Stored:
        """The compressed vector with its rotary key, as one row."""
        return fmt.keys(tokens, 1, self.rank + self.rope_dim)

    def per_token(self, fmt: Format) -> int | None:
        """The slope."""
        return mean_slope(self, fmt) if fmt.linear else None

    @property
    def heads(self) -> int | None:
        """One: every query head reads the same vector."""
        return 1

    @property
    def key_width(self) -> int | None:
        """The compressed vector and the rotary key."""
        return self.rank + self.rope_dim

    @property
    def value_width(self) -> int | None:
        """Values are read out of the compressed vector."""
        return 0

    def multi_head(self) -> Layer:
        """A key and a value for each head, as if they were not compressed."""
        return FullAttention(
            kv_heads=self.query_heads,
            key_dim=self.head_key_dim,
            value_dim=self.head_value_dim,
            query_heads=self.query_heads,
        )

    def on_rank(self, tp: int) -> Layer:
        """Every rank keeps the whole vector."""
        return replace(self, query_heads=max(1, ceil_div(self.query_heads, tp)))

    def formula(self, fmt: Format) -> str:
        """Rank and rotary width."""
        return (
            f"({self.rank} latent + {self.rope_dim} rotary) elements in {fmt.name}"
            f" = {mean_slope(self, fmt):,} B a token"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedLatentAttention(LatentAttention):
    """Latent attention with an indexer of its own: one more key of ``index_dim`` a token.

    ``index_bytes`` is the size of its elements where the model fixes it; 0 follows the format.
    """

    index_dim: int
    index_bytes: int = 0

    kind: ClassVar[str] = "indexed_latent_attention"

    def stored(self, tokens: int, fmt: Format) -> Stored:
        """The latent row and the indexer's key."""
        row = fmt.keys(tokens, 1, self.rank + self.rope_dim)
        return row + index_keys(tokens, self.index_dim, self.index_bytes, fmt)

    def formula(self, fmt: Format) -> str:
        """Rank, rotary width and indexer."""
        return (
            f"({self.rank} latent + {self.rope_dim} rotary + {self.index_dim} indexer) elements "
            f"in {fmt.name} = {mean_slope(self, fmt):,} B a token"
        )
