"""Kosmos-2 and Kosmos-2.5: learned queries read the image, a Magneto decoder reads the queries.

The cited files are those of transformers 5.24.0.
"""

from __future__ import annotations

from kvplan.core import weights as w
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Decoder, Heads, Weights
from kvplan.readers.families.composite import Composite
from kvplan.readers.families.encoder_decoder import equal_heads
from kvplan.readers.families.vision import EitherTies


class Kosmos2Text(Decoder):
    """Layer norms also inside attention and network; positions are computed.

    models/kosmos2/modeling_kosmos2.py, Kosmos2TextBlock: the norm inside the attention is as wide
    as the model and counts with the two of a block.
    """

    norm = "layer"
    norms = 3
    gated = False
    attention_bias = True
    mlp_bias = True
    tied_default = True

    def network(self, c: Config) -> Weights:
        """Two projections with a norm between."""
        return super().network(c) + parts.norm(self.inner(c), "layer")

    def inner(self, c: Config) -> int:
        """Width of the network."""
        return c.whole("ffn_dim")

    def heads(self, c: Config) -> Heads:
        """As many KV heads as query heads."""
        return equal_heads(c, self.hidden(c), "num_attention_heads")

    def depth(self, c: Config) -> int:
        """Blocks."""
        return c.layers("layers")


class Kosmos25Text(Kosmos2Text):
    """No norm inside the attention; a table that tells image from text."""

    norms = 2

    def embeddings(self, c: Config) -> Weights:
        """models/kosmos2_5/modeling_kosmos2_5.py, Kosmos2_5TextTransformer."""
        return super().embeddings(c) + parts.embedding(2, self.hidden(c), w.POSITION)


class Kosmos25(Composite):
    """The text model brings its head, which its own config ties."""

    text_type = "kosmos_2_5_text_model"
    text_classes = ("Kosmos2_5TextForCausalLM",)
    own_head = True

    def joint(self, c: Config, text: Config) -> Weights:
        """models/kosmos2/modeling_kosmos2.py, Kosmos2ImageToTextProjection."""
        width, hidden = self.vision_width(c), text.whole("hidden_size")
        return (
            *parts.linear("", width, hidden, bias=True),
            *parts.scalar(c.whole("latent_query_num") * hidden),
            *parts.attention(hidden, 1, 1, hidden, bias=True),
        )


class Kosmos2(Kosmos25, EitherTies):
    """Either config ties the head."""

    text_type = "kosmos_2_text_model"
    text_classes = ("Kosmos2TextForCausalLM",)
    own_head = False
