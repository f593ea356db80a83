"""Models that read or write images as tokens: Janus, Chameleon, Apertus 1.5, Emu 3, Fuyu.

The cited files are those of transformers 5.24.0.
"""

from __future__ import annotations

from kvplan.core import weights as w
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Heads, Weights
from kvplan.readers.families.composite import Composite
from kvplan.readers.families.encoder_decoder import equal_heads
from kvplan.readers.families.full import Llama
from kvplan.readers.families.vision import projections
from kvplan.readers.towers import vqgan

FUYU_TEXT_KEYS = (
    "hidden_size", "intermediate_size", "max_position_embeddings", "num_attention_heads",
    "num_hidden_layers", "qk_layernorm", "vocab_size",
)  # fmt: skip


class Janus(Composite):
    """SigLIP to understand images, a tokenizer to draw them, an aligner for each."""

    towers = ("vision_config", "vq_config")

    def joint(self, c: Config, text: Config) -> Weights:
        """models/janus/modeling_janus.py, JanusModel."""
        vision, codes = self.part(c, "vision_config"), self.part(c, "vq_config")
        width, number = codes.whole("embed_dim"), codes.whole("num_embeddings")
        drawn = codes.whole("projection_dim")
        return (
            *self.aligner(vision, vision.whole("hidden_size"), vision.layers("depth")),
            *parts.embedding(number, width),
            *self.aligner(codes, width, codes.layers()),
            *projections(codes.whole("image_token_embed_dim"), drawn, number),
        )

    @staticmethod
    def aligner(c: Config, width: int, depth: int) -> Weights:
        """``depth`` projections, all but the first from ``projection_dim`` to itself."""
        inner = c.whole("projection_dim")
        return projections(width, *([inner] * max(1, depth)))


class Chameleon(Llama):
    """Llama with a norm for every head of queries and keys, over words and image tokens.

    ``swin_norm`` moves the norms of a block behind its sublayers and changes no tensor.
    """

    def heads(self, c: Config) -> Heads:
        """models/chameleon/modeling_chameleon.py, ChameleonAttention reads no ``head_dim``."""
        query = equal_heads(c, self.hidden(c), "num_attention_heads")
        return query._replace(kv=c.whole("num_key_value_heads", query.query))

    def attention_weights(self, c: Config, heads: Heads) -> Weights:
        """ChameleonLayerNorm: scales and shifts of each head's own."""
        norms = parts.norm((heads.query + heads.kv) * heads.key_dim, "layer")
        return super().attention_weights(c, heads) + norms

    def embeddings(self, c: Config) -> Weights:
        """The words, and the tokenizer of images."""
        codes = vqgan.chameleon(c.section("vq_config"))
        return super().embeddings(c) + parts.as_role(codes, w.CODEC)


class Apertus15(Composite):
    """Tokenizers of images and sounds, whose codes are words of the vocabulary."""

    text_type = "apertus1p5_text"
    text_classes = ("Apertus1p5TextForCausalLM",)
    towers = ("vision_config", "audio_config")


class Emu3(Composite):
    """A tokenizer of images and videos, whose codes are words of the vocabulary."""

    text_type = "emu3_text_model"
    text_classes = ("Emu3ForCausalLM",)
    towers = ("vq_config",)


class Fuyu(Composite):
    """Patches through one matrix into a Persimmon decoder."""

    text_type = "persimmon"
    towers = ()

    def text_part(self, c: Config) -> Config:
        """A file without a text section has that section's keys at its own level.

        models/fuyu/configuration_fuyu.py, __post_init__.
        """
        raw = {key: c.raw[key] for key in FUYU_TEXT_KEYS if key in c.raw}
        if not raw or c.has("text_config"):
            return super().text_part(c)
        return Config(raw, "persimmon", c.path)

    def joint(self, c: Config, text: Config) -> Weights:
        """models/fuyu/modeling_fuyu.py, FuyuModel."""
        patch = c.whole("patch_size") ** 2 * c.whole("num_channels")
        return projections(patch, text.whole("hidden_size"))
