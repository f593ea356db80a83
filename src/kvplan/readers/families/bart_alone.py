"""BART's decoder without an encoder of its own: TrOCR's and PP-FormulaNet's.

They keep an encoder's tokens where a model that holds them has one. Rules are those of
transformers 5.24.0.
"""

from __future__ import annotations

from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.bart import Bart, MBart, Side
from kvplan.readers.families.base import Weights
from kvplan.readers.families.encoder_decoder import full_attention


class TrOcr(Bart):
    """models/trocr/modeling_trocr.py: positions and the norm after the table are choices."""

    def alone(self, c: Config) -> bool:
        """Always."""
        return True

    def frame(self, c: Config, length: str) -> Weights:
        """Computed positions are no parameters."""
        learned = c.flag("use_learned_position_embeddings", True)
        norm = c.flag("layernorm_embedding", True)
        return (
            *(self.positions(c, length) if learned else ()),
            *(parts.norm(self.hidden(c), "layer") if norm else ()),
        )

    def cross_attention(self, c: Config, side: Side) -> Weights:
        """Keys and values of the encoder's width."""
        source = c.whole("cross_attention_hidden_size", side.width)
        cross = full_attention(side.heads, side.width, bias=True, source_width=source)
        return cross + parts.norm(side.width, "layer")


class PPFormulaNetText(MBart):
    """models/pp_formulanet/modeling_pp_formulanet.py; its head names no tensors to tie."""

    def alone(self, c: Config) -> bool:
        """Always."""
        return True

    def tied(self, c: Config) -> bool:
        """Never."""
        return False
