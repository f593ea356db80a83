"""BART's decoder without an encoder of its own: TrOCR's, MusicGen's and PP-FormulaNet's.

They keep an encoder's tokens where a model that holds them has one. Rules are those of
transformers 5.24.0.
"""

from __future__ import annotations

from kvplan.core import weights as w
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.bart import Bart, MBart, Side
from kvplan.readers.families.base import Heads, Weights
from kvplan.readers.families.encoder_decoder import equal_heads, full_attention


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

    def cross_attention(self, c: Config, heads: Heads) -> Weights:
        """Keys and values of the encoder's width."""
        width = self.hidden(c)
        source = c.whole("cross_attention_hidden_size", width)
        cross = full_attention(heads, width, bias=True, source_width=source)
        return cross + parts.norm(width, "layer")


class PPFormulaNetText(MBart):
    """models/pp_formulanet/modeling_pp_formulanet.py; its head names no tensors to tie."""

    def alone(self, c: Config) -> bool:
        """Always."""
        return True

    def tied(self, c: Config) -> bool:
        """Never."""
        return False


class MusicgenDecoder(Bart):
    """models/musicgen/modeling_musicgen.py: a table and a head for each channel of codes."""

    position_offset = None
    embedding_norm = False
    final_norm = True
    attention_bias = False
    network_bias = False

    def alone(self, c: Config) -> bool:
        """Always."""
        return True

    def tables(self, c: Config, alone: bool) -> Weights:
        """One row more than there are codes, in each channel."""
        table = parts.embedding(self.vocab(c) + 1, self.hidden(c))
        return parts.repeat(table, c.whole("num_codebooks"))

    def head(self, c: Config) -> Weights:
        """One a channel, never tied."""
        head = parts.linear(w.HEAD, self.hidden(c), self.vocab(c))
        return parts.repeat(head, c.whole("num_codebooks"))

    def side(self, c: Config, name: str) -> Side:
        """Its keys are those of a decoder-only model."""
        heads = equal_heads(c, self.hidden(c), "num_attention_heads")
        return Side(c.layers(), heads, c.whole("ffn_dim"))

    def decoder_depth(self, c: Config) -> int:
        """Blocks of the decoder."""
        return c.layers()
