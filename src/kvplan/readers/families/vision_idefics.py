"""The Idefics models: cross-attention to images, then a resampler, then squares of patches.

The cited files are those of transformers 5.24.0.
"""

from __future__ import annotations

from kvplan.core import weights as w
from kvplan.core.weights import Weight
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Decoder, Heads, Weights
from kvplan.readers.families.composite import Composite
from kvplan.readers.towers.clip import clip


class Idefics3(Composite):
    """Squares of patches through one projection."""

    def joint(self, c: Config, text: Config) -> Weights:
        """models/idefics3/modeling_idefics3.py, Idefics3SimpleMLP."""
        joined = self.vision_width(c) * c.whole("scale_factor") ** 2
        return parts.linear("", joined, text.whole("hidden_size"))


class Idefics2(Composite):
    """A gated projection, then a few learned queries that read the patches."""

    text_type = "mistral"

    def joint(self, c: Config, text: Config) -> Weights:
        """models/idefics2/modeling_idefics2.py, Idefics2Connector."""
        width = self.vision_width(c)
        inner, hidden = text.whole("intermediate_size"), text.whole("hidden_size")
        projection = (
            *parts.linear("", width, inner, count=2),
            *parts.linear("", inner, hidden),
        )
        return projection + self.resampler(self.part(c, "perceiver_config"), hidden)

    def resampler(self, c: Config, hidden: int) -> Weights:
        """Idefics2PerceiverResampler; the width is the text model's (Idefics2Config)."""
        heads, dim = c.whole("resampler_n_heads"), c.whole("resampler_head_dim")
        layer = (
            *parts.attention(hidden, heads, c.whole("num_key_value_heads"), dim),
            *parts.mlp(hidden, 4 * hidden),
            *parts.norm(hidden, count=3),
        )
        return (
            *parts.scalar(c.whole("resampler_n_latents") * hidden),
            *parts.repeat(layer, c.layers("resampler_depth")),
            *parts.norm(hidden),
        )


class Idefics(Decoder):
    """Llama with a gated cross-attention to images before some blocks; none of those is cached.

    models/idefics/modeling_idefics.py: IdeficsGatedCrossAttentionLayer takes no cache, it computes
    the keys and values of the images anew in every step.
    """

    attention_bias = False
    mlp_bias = False

    def heads(self, c: Config) -> Heads:
        """As many KV heads as query heads, which share the width evenly."""
        count = c.whole("num_attention_heads")
        dim = max(1, self.hidden(c) // count)
        return Heads(count, count, dim, dim)

    def embeddings(self, c: Config) -> Weights:
        """The words, those added to them, the images' encoder and the gated cross-attentions."""
        added = parts.embedding(c.whole("additional_vocab_size", 0, least=0), self.hidden(c))
        vision = c.section("vision_config")
        found = super().embeddings(c) + added + parts.as_role(clip(vision), w.TOWER)
        if c.flag("use_resampler"):
            found += parts.as_role(self.resampler(c, vision.whole("hidden_size")), w.PROJECTOR)
        count = self.depth(c) // c.whole("cross_layer_interval")
        return found + parts.repeat(self.cross_attention(c, vision), count)

    def cross_attention(self, c: Config, vision: Config) -> Weights:
        """IdeficsGatedCrossAttentionLayer: keys and values of the images' width, two gates."""
        hidden, heads = self.hidden(c), self.heads(c)
        size, width = heads.query * heads.key_dim, vision.whole("hidden_size")
        norms = parts.norm(heads.key_dim, count=2) if c.flag("qk_layer_norms") else ()
        return (
            Weight(w.QUERY, size, hidden),
            Weight(w.KEY, size, width),
            Weight(w.VALUE, size, width),
            Weight(w.OUTPUT, hidden, size),
            *norms,
            *parts.mlp(hidden, self.inner(c)),
            *parts.norm(hidden, count=2),
            *parts.scalar(hidden if c.text("alpha_type") == "vector" else 1, 2),
        )

    def resampler(self, c: Config, width: int) -> Weights:
        """models/idefics/perceiver.py, IdeficsPerceiverResampler."""
        own = c.section("perceiver_config")
        heads, dim = own.whole("resampler_n_heads"), own.whole("resampler_head_dim")
        norms = parts.norm(dim, "layer", 2) if own.flag("qk_layer_norms_perceiver") else ()
        layer = (
            *parts.attention(width, heads, heads, dim),
            *norms,
            *parts.mlp(width, 4 * width, gated=False),
            *parts.norm(width, "layer", 3),
        )
        return (
            *parts.scalar(own.whole("resampler_n_latents") * width),
            *parts.repeat(layer, own.layers("resampler_depth")),
            *parts.norm(width, "layer"),
        )

    def head(self, c: Config) -> Weights:
        """The added words have rows of their own, which are tied as the others are."""
        added = c.whole("additional_vocab_size", 0, least=0)
        tied = self.tied(c)
        return super().head(c) + (() if tied else parts.linear(w.HEAD, self.hidden(c), added))
