"""Attention over an encoder: keys and values that are computed once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from kvplan.core.formats import Format, Stored
from kvplan.core.layers import HeadedLayer, Layer
from kvplan.core.units import ceil_div


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossAttention(HeadedLayer):
    """Keys and values over an encoder's tokens, computed once and kept."""

    encoder_tokens: int

    kind: ClassVar[str] = "cross_attention"

    def stored(self, tokens: int, fmt: Format) -> Stored:
        """The encoder's keys and values, whatever the decoder's length."""
        return fmt.keys(self.encoder_tokens, self.kv_heads, self.key_dim) + fmt.values(
            self.encoder_tokens, self.kv_heads, self.value_dim
        )

    def on_rank(self, tp: int) -> Layer:
        """Heads are split."""
        return replace(self, kv_heads=max(1, ceil_div(self.kv_heads, tp)))

    def formula(self, fmt: Format) -> str:
        """Encoder tokens × heads × widths."""
        return (
            f"{self.encoder_tokens:,} encoder tokens × {self.kv_heads} heads × "
            f"({self.key_dim} + {self.value_dim}) in {fmt.name} = {self.fixed_bytes(fmt):,} B, once"
        )
