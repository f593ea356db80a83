"""The text models of vision and speech models where they are no published type of their own.

Grouped-query attention over every token or a window; files cited are those of transformers 5.24.0,
below ``models/``.
"""

from __future__ import annotations

from kvplan.core import weights as w
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import FULL, Decoder, Weights
from kvplan.readers.families.mixtures import DENSE, SPARSE, Named
from kvplan.readers.families.windows import Mistral

ADA_RANK = 32  # voxtral_realtime/modeling_voxtral_realtime.py, VoxtralRealtimeTextAdaRmsNorm


class Cosmos3EdgeText(Decoder):
    """A network without a gate."""

    gated = False


class Glm4vText(Decoder):
    """Four norms a block; biases on queries, keys and values alone; the head's width derived."""

    norms = 4
    attention_bias = True
    output_bias = False
    mlp_bias = False
    named_head_dim = False


class GlmOcrText(Decoder):
    """Four norms a block, no biases."""

    norms = 4
    attention_bias = False
    mlp_bias = False


class GlmImageText(Decoder):
    """Four norms a block; the head is over the codes of images."""

    norms = 4
    output_bias = False
    mlp_bias = False

    def head(self, c: Config) -> Weights:
        """glm_image/modeling_glm_image.py, GlmImageForConditionalGeneration: never tied."""
        return parts.linear(w.HEAD, self.hidden(c), c.whole("vision_vocab_size"))


class Molmo2Text(Decoder):
    """More rows in the embedding than in the head; norms of queries and keys of two kinds."""

    output_bias = False
    mlp_bias = False

    def embeddings(self, c: Config) -> Weights:
        """The vocabulary and ``additional_vocab_size`` rows."""
        rows = self.vocab(c) + c.whole("additional_vocab_size", 0, least=0)
        return parts.embedding(rows, self.hidden(c))

    def query_norm(self, c: Config) -> str:
        """molmo2/modeling_molmo2.py, Molmo2Attention."""
        return "head" if c.text("qk_norm_type") == "qwen3" else "all"

    def tied(self, c: Config) -> bool:
        """Never: the class ties no weights."""
        return False


class PaddleOcrText(Decoder):
    """One key for all biases."""

    attention_bias = "use_bias"
    mlp_bias = "use_bias"


class VoxtralRealtimeText(Mistral):
    """A window in every layer, and a narrow network that scales the norm by the delay."""

    def block_norms(self, c: Config) -> Weights:
        """Two norms and the narrow network's matrices."""
        hidden = self.hidden(c)
        return (
            *super().block_norms(c),
            *parts.linear(w.MLP_IN, hidden, ADA_RANK),
            *parts.linear(w.MLP_OUT, ADA_RANK, hidden),
        )


class DeepseekOcr2Text(Named):
    """Plain attention; shared experts as one network; the head's width derived."""

    mlp_bias = "mlp_bias"
    named_head_dim = False
    expert_count = "n_routed_experts"
    shared_count = "n_shared_experts"


class UnlimitedOcrText(DeepseekOcr2Text):
    """Every layer keeps the whole prompt, and a window of what is generated after it.

    unlimited_ocr/modeling_unlimited_ocr.py: sized as a prompt, every token is kept, so the layers
    are full ones under either name.
    """

    def kinds(self, c: Config, count: int) -> list[str]:
        """Full, since it is prompts that fill the cache."""
        return [FULL] * count

    def derive_networks(self, c: Config, count: int) -> list[str]:
        """``first_k_dense_replace`` dense blocks, then sparse ones."""
        dense = min(count, c.whole("first_k_dense_replace", 1, least=0))
        return [DENSE] * dense + [SPARSE] * (count - dense)
