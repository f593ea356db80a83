"""Grok 2, which runs from engines' code: a dense network and experts side by side in every block.

Keys and modules are those of SGLang's python/sglang/srt/models/grok.py (0.5.2), Grok1DecoderLayer.
"""

from __future__ import annotations

from kvplan.readers.config import Config
from kvplan.readers.families.base import Weights
from kvplan.readers.families.mixtures import SPARSE
from kvplan.readers.families.published_mixtures import Published


class Grok(Published):
    """Norms before and after attention and network; ``residual_moe`` adds the dense network."""

    norms = 4
    expert_count = "num_local_experts"
    attention_bias = False

    def network_kinds(self, c: Config, count: int) -> list[str]:
        """Every block is sparse."""
        return [SPARSE] * count

    def mixture(self, c: Config) -> Weights:
        """Experts, and the dense network beside them."""
        beside = self.network(c) if c.flag("residual_moe") else ()
        return super().mixture(c) + beside
