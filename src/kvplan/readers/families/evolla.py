"""Evolla: a Llama that reads a protein through adapters after some of its blocks.

The rules are those of transformers 5.24.0, models/evolla/configuration_evolla.py and
modeling_evolla.py. The adapters compute the protein's keys and values anew in every step, so that
the cache is Llama's.
"""

from __future__ import annotations

from kvplan.core import weights as w
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Weights
from kvplan.readers.families.full import Llama

# SaProtConfig, which has no type of its own and so no row among the class defaults.
SAPROT = {
    "vocab_size": 446, "hidden_size": 1280, "num_hidden_layers": 33, "intermediate_size": 5120,
    "max_position_embeddings": 1026,
}  # fmt: skip


class Evolla(Llama):
    """SaProt, a resampler, and ``aligner_num_add_layers`` adapters spread over the blocks."""

    def embeddings(self, c: Config) -> Weights:
        """The words, and what reads the protein."""
        protein = c.section("protein_encoder_config")
        width = protein.whole("hidden_size", SAPROT["hidden_size"])
        return (
            *super().embeddings(c),
            *parts.as_role(self.protein(protein, width), w.TOWER),
            *parts.as_role(self.resampler(c, width), w.PROJECTOR),
            *parts.repeat(self.adapter(c), self.num_adapters(c)),
        )

    @staticmethod
    def protein(c: Config, width: int) -> Weights:
        """EvollaSaProtProteinEncoder: norms before attention and network, one at the end."""
        absolute = c.text("position_embedding_type", "rotary") == "absolute"
        rows = c.whole("max_position_embeddings", SAPROT["max_position_embeddings"])
        inner = c.whole("intermediate_size", SAPROT["intermediate_size"])
        block = (
            *parts.attention(width, 1, 1, width, bias=True),
            *parts.mlp(width, inner, gated=False, bias=True),
            *parts.norm(width, "layer", 2),
        )
        return (
            *parts.embedding(c.whole("vocab_size", SAPROT["vocab_size"]), width),
            *(parts.embedding(rows, width) if absolute else ()),
            *parts.repeat(block, c.layers(default=SAPROT["num_hidden_layers"])),
            *parts.norm(width, "layer", 2 if c.flag("emb_layer_norm_before") else 1),
        )

    def resampler(self, c: Config, width: int) -> Weights:
        """EvollaSequenceCompressorResampler: latents read the protein, then a projection."""
        hidden, size = self.hidden(c), c.whole("resampler_heads") * c.whole("resampler_dim_head")
        layer = (
            *parts.attention(width, 1, 1, size),
            *parts.mlp(width, int(width * c.number("resampler_ff_mult")), gated=False),
            *parts.norm(width, "layer", 3),
        )
        return (
            *parts.scalar(c.whole("resampler_num_latents") * width),
            *parts.repeat(layer, c.layers("resampler_depth")),
            *parts.norm(hidden, "layer"),
            *parts.linear("", width, hidden, bias=True),
        )

    def num_adapters(self, c: Config) -> int:
        """One after every ``depth // aligner_num_add_layers`` blocks."""
        depth = self.depth(c)
        return depth // max(1, depth // c.whole("aligner_num_add_layers"))

    def adapter(self, c: Config) -> Weights:
        """EvollaSequenceAlignerCrossAttention: a gated attention and a gated network."""
        hidden = self.hidden(c)
        out = c.flag("aligner_enable_bias")
        return (
            *parts.attention(hidden, 1, 1, hidden, bias=True, out_bias=out),
            *parts.norm(hidden),
            *parts.mlp(hidden, int(hidden * c.number("aligner_ffn_mult")), gated=False),
            *parts.norm(hidden, "layer"),
            *parts.scalar(1, 2),
        )

    def tied(self, c: Config) -> bool:
        """Never: EvollaForProteinText2Text names no tensors to tie."""
        return False
