"""Moshi: a text decoder, and a depth decoder over the codebooks of one frame.

models/moshi/configuration_moshi.py and modeling_moshi.py of transformers 5.24.0.
"""

from __future__ import annotations

from kvplan.core import weights as w
from kvplan.core.weights import Weight
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Decoder, Weights


class Moshi(Decoder):
    """A window in every layer; gate and up share ``ffn_dim``; one more row in the embedding."""

    attention_bias = False

    def network(self, c: Config) -> Weights:
        """Gate and up side by side in ``ffn_dim``, half of it down (MoshiGatingMLP)."""
        hidden, wide = self.hidden(c), c.whole("ffn_dim")
        return (Weight(w.MLP_IN, wide, hidden), Weight(w.MLP_OUT, hidden, wide // 2))

    def embeddings(self, c: Config) -> Weights:
        """The vocabulary and a padding row."""
        return parts.embedding(self.vocab(c) + 1, self.hidden(c))

    def tied(self, c: Config) -> bool:
        """Never: the class ties no weights."""
        return False
