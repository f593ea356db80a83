"""Llama's vision-language models: Llama 4, and Llama 3.2 with cross-attention to the image.

Cited files are those of transformers 5.24.0.
"""

from __future__ import annotations

from dataclasses import replace

from kvplan.core.cross import CrossAttention
from kvplan.core.layers import Layer
from kvplan.core.stack import Stack
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import (
    NO_OPTIONS,
    Decoder,
    Description,
    Mixer,
    Options,
    Weights,
)
from kvplan.readers.families.composite import Composite

# models/mllama/configuration_mllama.py, MllamaTextConfig.__post_init__.
CROSS_LAYERS = (3, 8, 13, 18, 23, 28, 33, 38)
IMAGE_ROWS = 8  # rows of the embedding beside the vocabulary (MllamaTextModel)


class Llama4(Composite):
    """The text model is built with its head; one matrix stands between (models/llama4)."""

    text_classes = ("Llama4ForCausalLM",)
    own_head = True

    def joint(self, c: Config, text: Config) -> Weights:
        """Llama4MultiModalProjector."""
        width = c.section("vision_config").whole("vision_output_dim")
        return parts.linear("", width, text.whole("hidden_size"))


class Mllama(Composite):
    """Images are read by cross-attention, through one matrix (models/mllama)."""

    text_classes = ("MllamaForCausalLM",)

    def joint(self, c: Config, text: Config) -> Weights:
        """MllamaModel.multi_modal_projector."""
        width = c.section("vision_config").whole("vision_output_dim")
        return parts.linear("", width, text.whole("hidden_size"), bias=True)


class MllamaText(Decoder):
    """Some layers attend to the image alone: they keep its tokens, and nothing without one.

    models/mllama/modeling_mllama.py, MllamaTextCrossAttention.
    """

    attention_bias = False
    mlp_bias = False

    def describe(self, c: Config, options: Options = NO_OPTIONS) -> Description:
        """The decoder, with as many of the image's tokens as the asker names."""
        found = super().describe(c)
        image = options.encoder_tokens
        if image is None:
            return found
        kinds = tuple([(_over_image(block[0], image),) for block in found.blocks.kinds])
        return found._replace(blocks=Stack(kinds, found.blocks.order), encoder_tokens=image)

    def mixers(self, c: Config) -> Stack[Mixer]:
        """Attention to the image in the layers that ``cross_attention_layers`` counts."""
        depth = self.depth(c)
        cross = set(c.wholes("cross_attention_layers", CROSS_LAYERS))
        order = tuple([int(place in cross) for place in range(depth)])
        return Stack((self.attention(c), self.cross_attention(c)), order)

    def cross_attention(self, c: Config) -> Mixer:
        """Norms of queries and keys, and a gate for the attention and one for the network."""
        heads = self.heads(c)
        cache = CrossAttention(
            kv_heads=heads.kv, key_dim=heads.key_dim, value_dim=heads.value_dim, encoder_tokens=0
        )
        weights = parts.attention(
            self.hidden(c), heads.query, heads.kv, heads.key_dim, qk_norm="head"
        )
        return Mixer((cache,), weights + parts.scalar(1, 2))

    def embeddings(self, c: Config) -> Weights:
        """The vocabulary and the image's own tokens."""
        return parts.embedding(self.vocab(c) + IMAGE_ROWS, self.hidden(c))

    def tied(self, c: Config) -> bool:
        """Never: the head has no row for the image's tokens."""
        return False


def _over_image(layer: Layer, tokens: int) -> Layer:
    return replace(layer, encoder_tokens=tokens) if isinstance(layer, CrossAttention) else layer
