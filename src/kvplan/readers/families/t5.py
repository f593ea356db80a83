"""T5 and its kin: heads of a width of their own, relative positions, scales alone as norms.

Rules are those of transformers 5.24.0. T5 has no longest input: positions are relative, so a length
that nobody gives is the ``n_positions`` of older files, else the 512 tokens it was trained on.
"""

from __future__ import annotations

from kvplan.core import weights as w
from kvplan.core.errors import BadFile
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import NO_OPTIONS, Description, Heads, Options, Weights
from kvplan.readers.families.encoder_alone import as_encoder, keeping_nothing, named_class
from kvplan.readers.families.encoder_decoder import EncoderDecoder
from kvplan.readers.towers import vit

TRAINED_TOKENS = 512


class T5(EncoderDecoder):
    """Tables and head are always one tensor (configuration_t5.py, __post_init__)."""

    relative_everywhere: bool = False

    def describe(self, c: Config, options: Options = NO_OPTIONS) -> Description:
        """Both sides, or the encoder alone where the config names such a class."""
        found = super().describe(c, options)
        name = named_class(c)
        if not name.endswith("EncoderModel"):
            return found
        tensors = (*parts.embedding(self.vocab(c), self.hidden(c)), *self.encoder(c))
        blocks = keeping_nothing(c.layers("num_layers"))
        return as_encoder(found._replace(blocks=blocks, tensors=tensors, encoder_tokens=None), name)

    def tables(self, c: Config, alone: bool) -> Weights:
        """The shared table, and one for each side where it is not tied."""
        table = parts.embedding(self.vocab(c), self.hidden(c))
        return table if self.tied(c) else parts.repeat(table, 3)

    def encoder(self, c: Config) -> Weights:
        """models/t5/modeling_t5.py, T5Stack."""
        depth = c.layers("num_layers")
        return (
            *self.stack(c, depth, attentions=1),
            *self.networks(c, depth, "encoder"),
        )

    def decoder(self, c: Config) -> Weights:
        """The same with an attention over the encoder in each block."""
        depth = self.decoder_depth(c)
        return (
            *self.stack(c, depth, attentions=2),
            *self.networks(c, depth, "decoder"),
        )

    def stack(self, c: Config, depth: int, attentions: int) -> Weights:
        """Attentions and relative positions of one side, a norm a sublayer and a final one."""
        biased = depth if self.relative_everywhere else min(depth, 1)
        return (
            *parts.repeat(self.attention(c), attentions * depth),
            *parts.repeat(self.relative(c), biased),
            *parts.norm(self.hidden(c), "rms", (attentions + 1) * depth + 1),
        )

    def attention(self, c: Config) -> Weights:
        """T5Attention: no biases, heads together as wide as ``num_heads × d_kv``."""
        heads = self.heads(c)
        return parts.attention(self.hidden(c), heads.query, heads.kv, heads.key_dim)

    def relative(self, c: Config) -> Weights:
        """A bias a bucket of distance and head."""
        buckets = c.whole("relative_attention_num_buckets")
        return parts.embedding(buckets, self.heads(c).query, w.POSITION)

    def networks(self, c: Config, depth: int, name: str) -> Weights:
        """The feed-forward networks of all blocks of one side."""
        return parts.repeat(self.network(c), depth)

    def network(self, c: Config) -> Weights:
        """One network; ``feed_forward_proj`` says whether it is gated."""
        return parts.mlp(self.hidden(c), c.whole("d_ff"), gated=self.gated(c))

    def gated(self, c: Config) -> bool:
        """``gated-gelu`` and the like (configuration_t5.py, __post_init__)."""
        return c.text("feed_forward_proj").split("-")[0] == "gated"

    def heads(self, c: Config) -> Heads:
        """Heads of both sides."""
        count, width = c.whole("num_heads"), c.whole("d_kv")
        return Heads(count, count, width, width)

    def decoder_depth(self, c: Config) -> int:
        """As deep as the encoder where the file does not say."""
        if c.has("num_decoder_layers"):
            return c.layers("num_decoder_layers")
        return c.layers("num_layers")

    def tied(self, c: Config) -> bool:
        """Whatever the file says: older ones say false of a tied model."""
        return True

    def source_tokens(self, c: Config) -> int | None:
        """See the head of this file."""
        return c.whole("n_positions", TRAINED_TOKENS)

    def max_context(self, c: Config) -> int | None:
        """What an older file declares."""
        return c.whole("n_positions") if c.has("n_positions") else None


class UMT5(T5):
    """Relative positions in every layer."""

    relative_everywhere = True


class LongT5(T5):
    """An encoder of local attention; with transient globals, biases and norms for those."""

    def encoder(self, c: Config) -> Weights:
        """models/longt5/modeling_longt5.py, LongT5TransientGlobalAttention."""
        found = super().encoder(c)
        if c.text("encoder_attention_type") != "transient-global":
            return found
        depth = c.layers("num_layers")
        norms = parts.norm(self.hidden(c), "rms", depth)
        return found + norms + parts.repeat(self.relative(c), min(depth, 1))


class Pop2Piano(T5):
    """T5 over spectrograms, which starts with an embedding of the composer."""

    def encoder(self, c: Config) -> Weights:
        """models/pop2piano/modeling_pop2piano.py, Pop2PianoConcatEmbeddingToMel."""
        composers = parts.embedding(c.whole("composer_vocab_size"), self.hidden(c))
        return super().encoder(c) + composers

    def head(self, c: Config) -> Weights:
        """Not among the tensors that the class ties."""
        return parts.linear(w.HEAD, self.hidden(c), self.vocab(c))


class SwitchTransformers(T5):
    """Some layers are mixtures of experts of which a token passes one; tying is a choice."""

    def networks(self, c: Config, depth: int, name: str) -> Weights:
        """Dense layers and sparse ones (SwitchTransformersStack)."""
        sparse = self.sparse_layers(depth, c.whole(f"num_sparse_{name}_layers", least=0))
        experts = parts.experts(
            self.hidden(c),
            c.whole("d_ff"),
            c.whole("num_experts"),
            1,
            gated=False,
            router_bias=c.flag("router_bias"),
        )
        dense = parts.repeat(self.network(c), depth - sparse)
        return dense + parts.repeat(experts, sparse)

    @staticmethod
    def sparse_layers(depth: int, wanted: int) -> int:
        """Layers whose index is one more than a multiple of the step.

        The step is ``depth`` where none is wanted, which still makes one of several layers sparse
        (configuration_switch_transformers.py, "HACK"; modeling_switch_transformers.py).
        """
        step = depth // wanted if wanted else depth
        if step <= 1:
            return depth if step else 0
        return (depth + step - 2) // step

    def gated(self, c: Config) -> bool:
        """Never."""
        return False

    def tied(self, c: Config) -> bool:
        """As the file says."""
        return c.flag("tie_word_embeddings", True)


class Udop(T5):
    """T5 over text, its places on the page and patches of the page's image."""

    def encoder(self, c: Config) -> Weights:
        """models/udop/modeling_udop.py: patches, places by axis, biases by distance on the page."""
        places = c.whole("max_2d_position_embeddings")
        return (
            *super().encoder(c),
            *self.patches(c),
            *self.page_biases(c),
            *parts.repeat(parts.embedding(places, self.hidden(c)), 2),
        )

    def decoder(self, c: Config) -> Weights:
        """UdopStack builds patches and page biases for the decoder as well, and ties neither."""
        return super().decoder(c) + parts.as_role(self.patches(c), w.TOWER) + self.page_biases(c)

    def patches(self, c: Config) -> Weights:
        """The projection of image patches."""
        return vit.patches(c, self.hidden(c))

    def page_biases(self, c: Config) -> Weights:
        """A bias of 32 buckets a kind of distance; the first kind is the encoder's own bias."""
        kinds = c.value("relative_bias_args", ("1d", "horizontal", "vertical"))
        if not isinstance(kinds, list | tuple) or not kinds:
            raise BadFile("The config's relative_bias_args is not a list of at least one bias.")
        return parts.repeat(parts.embedding(32, self.heads(c).query, w.POSITION), len(kinds) - 1)

    def source_tokens(self, c: Config) -> int | None:
        """The text, and the patches of the image."""
        return c.whole("n_positions", TRAINED_TOKENS) + vit.patch_count(c)
