"""Early decoders that keep something else than the keys and values of their text.

XLNet and Reformer keep each layer's input, CPM-Ant a learned prompt in front of the text. Rules are
those of transformers 5.24.0, ``models/TYPE/modeling_TYPE.py``.
"""

from __future__ import annotations

from kvplan.core import weights as w
from kvplan.core.hidden import HashedStates, HiddenStates, PromptedAttention, RecentStates
from kvplan.core.layers import FLOAT32_BYTES, Layer, NoCache
from kvplan.core.stack import Stack
from kvplan.core.weights import Weight
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Decoder, Heads, Mixer, Weights, layer_kinds
from kvplan.readers.families.gpt import Gpt

LOCAL, HASHED = "local", "lsh"
HALF_BYTES = 2


class XlNet(Gpt):
    """Relative positions with a projection and biases of their own; a memory of hidden states."""

    attention_bias = False
    final_norm = False
    head_bias = True
    inner_key = "d_inner"

    def attention(self, c: Config, window: int | None = None) -> Mixer:
        """The memory, in float32 since the relative positions are (XLNetModel.cache_mem)."""
        return Mixer((self.memory(c),), self.attention_weights(c, self.heads(c)))

    def memory(self, c: Config) -> Layer:
        """The last ``mem_len`` inputs, all where it is not given, none where it is off."""
        if not c.flag("use_mems_eval", True):
            return NoCache()
        width, size = self.hidden(c), c.whole("mem_len", 0, least=0)
        if size:
            return RecentStates(width=width, element_bytes=FLOAT32_BYTES, size=size)
        return HiddenStates(width=width, element_bytes=FLOAT32_BYTES)

    def attention_weights(self, c: Config, heads: Heads) -> Weights:
        """XLNetRelativeAttention: r beside q, k, v and o; three biases; two segments."""
        inner = heads.query * heads.key_dim
        return (
            *super().attention_weights(c, heads),
            Weight(w.KEY, inner, self.hidden(c)),
            Weight(w.BIAS, inner, 1, 3),
            *parts.scalar(inner, 2),
        )

    def embeddings(self, c: Config) -> Weights:
        """Tokens and the mask's."""
        return super().embeddings(c) + parts.scalar(self.hidden(c))


class Reformer(Gpt):
    """Reversible layers of two kinds: local ones, and ones that look where a hash says."""

    attention_bias = False
    inner_key = "feed_forward_size"

    def depth(self, c: Config) -> int:
        """As many as are named."""
        return len(c.words("attn_layers"))

    def mixers(self, c: Config) -> Stack[Mixer]:
        """One mixer a kind (ReformerAttention)."""
        kinds = layer_kinds(c, self.depth(c), key="attn_layers", known=(LOCAL, HASHED))
        return Stack.named(kinds, {kind: self.reading(c, kind) for kind in dict.fromkeys(kinds)})

    def reading(self, c: Config, kind: str) -> Mixer:
        """Inputs, with hashes in a hashed layer, whose queries are its keys.

        ReformerDynamicCache; inputs are float32 where axial positions are added to them.
        """
        hidden, heads = self.hidden(c), c.whole("num_attention_heads")
        inner = heads * c.whole("attention_head_size")
        size = FLOAT32_BYTES if c.flag("axial_pos_embds") else HALF_BYTES
        weights: Weights = (
            Weight(w.KEY, inner, hidden),
            Weight(w.VALUE, inner, hidden),
            Weight(w.OUTPUT, hidden, inner),
        )
        if kind == LOCAL:
            query = (Weight(w.QUERY, inner, hidden),)
            return Mixer((HiddenStates(width=hidden, element_bytes=size),), query + weights)
        cache = HashedStates(
            width=hidden,
            element_bytes=size,
            hashes=heads * c.whole("num_hashes"),
            chunk=c.whole("lsh_attn_chunk_length"),
        )
        return Mixer((cache,), weights)

    def embeddings(self, c: Config) -> Weights:
        """Tokens and positions, which are a sum over axes or one row each."""
        tokens = parts.embedding(self.vocab(c), self.hidden(c))
        if not c.flag("axial_pos_embds"):
            rows = c.whole("max_position_embeddings")
            return tokens + parts.embedding(rows, self.hidden(c), w.POSITION)
        axes = zip(c.wholes("axial_pos_shape"), c.wholes("axial_pos_embds_dim"), strict=False)
        return (*tokens, *(Weight(w.POSITION, length, width) for length, width in axes))

    def ending(self, c: Config) -> Weights:
        """Both halves of the reversible layers go through the norm and the head, never tied.

        The head's bias stands there twice (ReformerOnlyLMHead).
        """
        both, rows = 2 * self.hidden(c), self.vocab(c)
        head = (Weight(w.HEAD, rows, both), Weight(w.BIAS, rows, 1, 2))
        return parts.norm(both, self.norm) + head


class CpmAnt(Decoder):
    """No biases; learned prompts in front of the text, positions as buckets of distances."""

    attention_bias = False
    mlp_bias = False
    grouped_heads = False

    def heads(self, c: Config) -> Heads:
        """Heads of a width of their own."""
        heads, dim = c.whole("num_attention_heads"), c.whole("dim_head")
        return Heads(heads, heads, dim, dim)

    def inner(self, c: Config) -> int:
        """The width of the network."""
        return c.whole("dim_ff")

    def attention(self, c: Config, window: int | None = None) -> Mixer:
        """CpmAntModel.forward puts the prompt before the text, once a sequence."""
        heads = self.heads(c)
        cache = PromptedAttention(
            kv_heads=heads.kv,
            key_dim=heads.key_dim,
            value_dim=heads.value_dim,
            query_heads=heads.query,
            prompt=c.whole("prompt_length", least=0),
        )
        return Mixer((cache,), self.attention_weights(c, heads))

    def embeddings(self, c: Config) -> Weights:
        """Tokens with every prompt's, segments, and the biases of pairs of segments and buckets."""
        prompts = c.whole("prompt_types", least=0) * c.whole("prompt_length", least=0)
        segments, hidden = c.whole("segment_types"), self.hidden(c)
        rows = segments * segments + c.whole("position_bias_num_buckets")
        return (
            *parts.embedding(self.vocab(c) + prompts, hidden),
            *parts.embedding(segments, hidden, w.POSITION),
            Weight(w.POSITION, rows, c.whole("num_attention_heads")),
        )

    def tied(self, c: Config) -> bool:
        """Never: the embedding has the prompts' rows too (CpmAntForCausalLM)."""
        return False
