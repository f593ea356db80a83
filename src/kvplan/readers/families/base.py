"""The contract of a family, and the template of the decoder-only ones.

A family turns a config of its types into a ``Description``: what every block keeps, and every
tensor. ``Decoder`` is the template method: a block is a mixer (attention or a state, with its
caches and its weights), a feed-forward network and norms. A family says what differs.

    class Llama(Decoder):            # attention and a gated MLP, two RMS norms: all defaults
        ...

    class Qwen3(Decoder):
        qk_norm = "head"             # a declared difference
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from kvplan.core import weights as w
from kvplan.core.errors import BadFile
from kvplan.core.layers import FullAttention, Layer, SlidingWindow
from kvplan.core.model import Block
from kvplan.core.stack import Stack
from kvplan.core.weights import Weight
from kvplan.readers.config import Config
from kvplan.readers.families import parts

Weights = tuple[Weight, ...]

SLIDING, FULL = "sliding_attention", "full_attention"
ATTENTION_KINDS = (FULL, SLIDING)

# transformers 5.24.0, configuration_utils.py, _LEGACY_LAYER_TYPE_REMAP.
OLD_KINDS = {
    "attention": FULL,
    "mamba": "linear_attention",
    "deepseek_sparse_attention": "indexed_attention",
    "qwen_sparse_attention": "indexed_attention",
}


class Mixer(NamedTuple):
    """What mixes tokens in a block: the caches it keeps, and its tensors."""

    caches: Block
    weights: Weights


class Heads(NamedTuple):
    """The shape of an attention."""

    query: int
    kv: int
    key_dim: int
    value_dim: int


class Description(NamedTuple):
    """What a family knows of a model.

    ``uncounted`` says why ``tensors`` are not all there are, where a config leaves a shape open;
    ``left_out`` which sections they are without, where a copy has the language model's keys alone;
    ``said`` is what else an answer has to say, a sentence each.
    """

    blocks: Stack[Block]
    tensors: Weights
    max_context_tokens: int | None
    vocab_size: int | None
    hidden_size: int | None
    encoder_tokens: int | None = None
    uncounted: str = ""
    left_out: str = ""
    said: tuple[str, ...] = ()


class Options(NamedTuple):
    """What the asker adds to a config: it is not in the file, and changes what is kept."""

    encoder_tokens: int | None = None


NO_OPTIONS = Options()


class Family:
    """Turns a config of its types into a description."""

    def describe(self, c: Config, options: Options = NO_OPTIONS) -> Description:
        """The blocks and tensors of the class that the config's ``architectures`` names.

        Raises:
            BadFile: a key that is needed is absent, of the wrong type or out of range.
        """
        raise NotImplementedError


class Decoder(Family):
    """A causal language model of blocks in a row.

    Class attributes declare the usual differences; methods can be replaced for the rest.
    ``norm`` is the kind of the block norms and the final one; ``norms`` their number in a block.
    ``attention_bias`` and ``mlp_bias`` name the config key that decides (or are True or False).
    ``output_bias`` is that of the attention's output projection, None for the same as above;
    ``head_bias`` that of the head. ``grouped_heads`` and ``named_head_dim`` are off where a class
    does not read a number of KV heads or a ``head_dim``; ``context_key`` names the longest context.
    """

    norm: str = "rms"
    norms: int = 2
    gated: bool = True
    qk_norm: str = ""
    attention_bias: str | bool = "attention_bias"
    output_bias: str | bool | None = None
    mlp_bias: str | bool = "mlp_bias"
    final_norm: bool = True
    head_bias: str | bool = False
    tied_default: bool = False
    grouped_heads: bool = True
    named_head_dim: bool = True
    context_key: str = "max_position_embeddings"

    def describe(self, c: Config, options: Options = NO_OPTIONS) -> Description:
        """Blocks, then embeddings, blocks' tensors, final norm and head."""
        mixers = self.mixers(c)
        tensors = list(self.embeddings(c))
        for mixer, count in mixers.counted():
            tensors += parts.repeat(mixer.weights, count)
        for network, count in self.networks(c).counted():
            tensors += parts.repeat(network, count)
        tensors += parts.repeat(self.block_norms(c), len(mixers))
        tensors += self.ending(c)
        return Description(
            blocks=Stack(tuple([mixer.caches for mixer in mixers.kinds]), mixers.order),
            tensors=tuple(tensors),
            max_context_tokens=self.max_context(c),
            vocab_size=self.vocab(c),
            hidden_size=self.hidden(c),
        )

    # What a block is made of.

    def mixers(self, c: Config) -> Stack[Mixer]:
        """The mixer of every block: one attention a kind of layer."""
        kinds = self.kinds(c, self.depth(c))
        found = {
            kind: self.attention(c, self.window(c) if kind == SLIDING else None)
            for kind in dict.fromkeys(kinds)
        }
        return Stack.named(kinds, found)

    def kinds(self, c: Config, count: int) -> list[str]:
        """The kind of each layer: as the file names them, else as the config class derives them."""
        if c.has("layer_types"):
            return layer_kinds(c, count, known=ATTENTION_KINDS)
        return self.derive(c, count)

    def derive(self, c: Config, count: int) -> list[str]:
        """Windows in every layer of a config that has a window, whatever its type.

        transformers 5.24.0, cache_utils.py, get_layer_types_and_kwargs.
        """
        return [FULL if self.window(c) is None else SLIDING] * count

    def window(self, c: Config) -> int | None:
        """The window of the sliding layers in tokens; None where the config has none."""
        return c.whole("sliding_window") if c.has("sliding_window") else None

    def attention(self, c: Config, window: int | None = None) -> Mixer:
        """Attention over all tokens, or over a window of them."""
        heads = self.heads(c)
        return Mixer((attention_cache(heads, window),), self.attention_weights(c, heads))

    def attention_weights(self, c: Config, heads: Heads) -> Weights:
        """Projections, biases and the norms of queries and keys."""
        bias = self.says(c, self.attention_bias)
        return parts.attention(
            self.hidden(c),
            heads.query,
            heads.kv,
            heads.key_dim,
            value_dim=heads.value_dim,
            bias=bias,
            out_bias=bias if self.output_bias is None else self.says(c, self.output_bias),
            qk_norm=self.query_norm(c),
        )

    def query_norm(self, c: Config) -> str:
        """The kind of the norms of queries and keys (``parts.attention``); none where empty."""
        return self.qk_norm

    def networks(self, c: Config) -> Stack[Weights]:
        """The feed-forward network of every block."""
        return Stack.uniform(self.network(c), self.depth(c))

    def network(self, c: Config) -> Weights:
        """One dense network."""
        return parts.mlp(
            self.hidden(c), self.inner(c), gated=self.gated, bias=self.says(c, self.mlp_bias)
        )

    def block_norms(self, c: Config) -> Weights:
        """The norms of one block, all as wide as the model."""
        return parts.norm(self.hidden(c), self.norm, self.norms)

    def embeddings(self, c: Config) -> Weights:
        """What stands before the blocks."""
        return parts.embedding(self.vocab(c), self.hidden(c))

    def ending(self, c: Config) -> Weights:
        """The final norm, and the head unless it is tied to the embedding."""
        final = parts.norm(self.hidden(c), self.norm) if self.final_norm else ()
        return final + self.head(c)

    def head(self, c: Config) -> Weights:
        """The output projection."""
        bias = self.says(c, self.head_bias)
        if self.tied(c):
            return (Weight(w.BIAS, self.vocab(c)),) if bias else ()
        return parts.linear(w.HEAD, self.hidden(c), self.vocab(c), bias)

    # Where the numbers are.

    def depth(self, c: Config) -> int:
        """Blocks."""
        return c.layers()

    def hidden(self, c: Config) -> int:
        """Width of the model."""
        return c.whole("hidden_size")

    def inner(self, c: Config) -> int:
        """Width of the feed-forward network."""
        return c.whole("intermediate_size")

    def vocab(self, c: Config) -> int:
        """Rows of the embedding."""
        return c.whole("vocab_size")

    def max_context(self, c: Config) -> int | None:
        """The longest context the config declares."""
        return c.whole(self.context_key) if c.has(self.context_key) else None

    def heads(self, c: Config) -> Heads:
        """Query heads, KV heads (all of them where absent) and the width of one."""
        query = c.whole("num_attention_heads")
        kv = c.whole("num_key_value_heads", query) if self.grouped_heads else query
        divided = max(1, self.hidden(c) // query)
        dim = c.whole("head_dim", divided) if self.named_head_dim else divided
        return Heads(query, kv, dim, dim)

    def tied(self, c: Config) -> bool:
        """Whether the head is the embedding."""
        return c.flag("tie_word_embeddings", self.tied_default)

    @staticmethod
    def says(c: Config, key: str | bool) -> bool:
        """A declared difference: itself, or what the config says under that key."""
        return key if isinstance(key, bool) else c.flag(key)


def attention_cache(
    heads: Heads, window: int | None = None, *, copies: int = 1, index_dim: int = 0
) -> Layer:
    """The cache of an attention with these heads, windowed where ``window`` is given."""
    if window is None:
        return FullAttention(
            kv_heads=heads.kv,
            key_dim=heads.key_dim,
            value_dim=heads.value_dim,
            query_heads=heads.query,
            copies=copies,
            index_dim=index_dim,
        )
    return SlidingWindow(
        kv_heads=heads.kv,
        key_dim=heads.key_dim,
        value_dim=heads.value_dim,
        query_heads=heads.query,
        copies=copies,
        index_dim=index_dim,
        size=window,
    )


def layer_kinds(
    c: Config,
    count: int,
    derive: list[str] | None = None,
    *,
    key: str = "layer_types",
    known: Collection[str] = (),
) -> list[str]:
    """The kind of each layer by name: the config's list, else as the family derives it.

    Args:
        c: the config.
        count: the number of layers.
        derive: the kinds where the config has no list.
        key: the key of the list.
        known: the names there may be; anything goes where it is empty.

    Raises:
        BadFile: a list whose length is not the number of layers, or a name that is not known.
    """
    kinds = c.words(key, derive)
    if not OLD_KINDS.keys().isdisjoint(kinds):
        kinds = [OLD_KINDS.get(kind, kind) for kind in kinds]
    if len(kinds) != count:
        raise BadFile(
            f"The config's {key} names {len(kinds)} layers and num_hidden_layers is {count}."
        )
    if known:
        for kind in dict.fromkeys(kinds):
            if kind not in known:
                raise BadFile(
                    f"The config's {key} names {kind[:40]!r}: not one of {', '.join(known)}."
                )
    return kinds


def layer_flags(c: Config, key: str, count: int) -> list[int]:
    """A number for each layer, read as yes or no.

    Raises:
        BadFile: a list whose length is not the number of layers.
    """
    flags = c.wholes(key)
    if len(flags) != count:
        raise BadFile(
            f"The config's {key} has {len(flags)} layers and num_hidden_layers is {count}."
        )
    return flags
