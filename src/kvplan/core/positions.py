"""Attention that keeps its tokens' positions beside their keys."""

from __future__ import annotations

from dataclasses import dataclass

from kvplan.core.formats import Format, Stored
from kvplan.core.layers import FullAttention


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionedAttention(FullAttention):
    """Full attention with ``position_bytes`` of positions a token, in integers of their own.

    One layer keeps them for every indexer of a model (transformers 5.24.0,
    models/qwen4_exp/modeling_qwen4_exp.py, Qwen4ExpTextModel.forward).
    """

    position_bytes: int

    def stored(self, tokens: int, fmt: Format) -> Stored:
        """Keys, values, the indexer's keys, and the positions."""
        return FullAttention.stored(self, tokens, fmt) + Stored(tokens * self.position_bytes)

    def formula(self, fmt: Format) -> str:
        """The slope, and the positions in it."""
        plain = FullAttention.formula(self, fmt)
        return f"{plain}, of which {self.position_bytes} B are the token's positions"
