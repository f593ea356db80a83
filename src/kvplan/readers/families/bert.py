"""BERT and its kin as decoders: attention, a network, layer norms, and a head with a transform.

Rules are those of transformers 5.24.0. A model of this kind keeps a cache when it runs as a
decoder, which is the form that is described unless the config names a class that is an encoder (a
masked model, a classifier). The bare model is either: it is described as a decoder, and that is
said. A decoder in an encoder-decoder attends to the encoder as well where ``add_cross_attention``
is on. ``backbone`` is the model without its head, as it is built for an encoder.
"""

from __future__ import annotations

from kvplan.core import weights as w
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import (
    NO_OPTIONS,
    Decoder,
    Description,
    Heads,
    Mixer,
    Options,
    Weights,
)
from kvplan.readers.families.encoder_alone import as_encoder, named_class
from kvplan.readers.families.encoder_decoder import equal_heads, reading_encoder

DECODING = ("LMHeadModel", "ForCausalLM", "Decoder")  # classes that run as a decoder


class Bert(Decoder):
    """Tables of words, positions and segments with a norm; two norms a block.

    ``pooler`` is whether an encoder of this type has one; ``transform`` whether the head starts
    with a projection and a norm.
    """

    norm = "layer"
    gated = False
    attention_bias: str | bool = True
    mlp_bias = True
    final_norm = False
    tied_default = True
    embedding_norm: bool = True
    pooler: bool = True
    transform: bool = True

    def describe(self, c: Config, options: Options = NO_OPTIONS) -> Description:
        """The decoder, with a cache over the encoder where the asker says how long that is."""
        found = super().describe(c, options)
        name = named_class(c)
        if name and not name.endswith(DECODING) and not c.flag("is_decoder"):
            found = self.without_decoder(c, found, name)
        return reading_encoder(found, c, self.heads(c), options)

    def without_decoder(self, c: Config, found: Description, name: str) -> Description:
        """The class ``name``: a masked model has the decoder's head, a classifier its own."""
        if name.endswith("Model"):
            said = f"{name} is sized as the decoder it can be: as an encoder it keeps no cache."
            return found._replace(said=(said,))
        if name.endswith("ForMaskedLM"):
            return as_encoder(found, name)
        said = f"Parameters are those without the head of {name}."
        return as_encoder(found._replace(tensors=self.backbone(c)), name, said)

    def backbone(self, c: Config) -> Weights:
        """The model without a head, and with the pooler that its class adds by default."""
        depth = self.depth(c)
        found = (
            *self.embeddings(c),
            *parts.repeat(self.attention(c).weights, depth),
            *parts.repeat(self.network(c), depth),
            *parts.repeat(self.block_norms(c), depth),
            *self.last_norm(c),
        )
        return found + self.pooling(c) if self.pooler else found

    def attention(self, c: Config, window: int | None = None) -> Mixer:
        """Attention over its own tokens and, where added, over the encoder's with a norm."""
        own = super().attention(c, window)
        if not c.flag("add_cross_attention"):
            return own
        return Mixer(own.caches, (*own.weights, *own.weights, *parts.norm(self.hidden(c), "layer")))

    def embeddings(self, c: Config) -> Weights:
        """models/bert/modeling_bert.py, BertEmbeddings."""
        width = self.embedding_width(c)
        return (
            *parts.embedding(self.vocab(c), width),
            *self.positions(c),
            *parts.embedding(c.whole("type_vocab_size"), width, w.POSITION),
            *(parts.norm(width, "layer") if self.embedding_norm else ()),
        )

    def positions(self, c: Config) -> Weights:
        """A learned row a position."""
        rows = c.whole("max_position_embeddings")
        return parts.embedding(rows, self.embedding_width(c), w.POSITION)

    def embedding_width(self, c: Config) -> int:
        """Width of the tables."""
        return self.hidden(c)

    def last_norm(self, c: Config) -> Weights:
        """The norm after the last block."""
        return parts.norm(self.hidden(c), self.norm) if self.final_norm else ()

    def pooling(self, c: Config) -> Weights:
        """One projection of the first token."""
        return parts.linear(w.HEAD, self.hidden(c), self.hidden(c), bias=True)

    def head(self, c: Config) -> Weights:
        """BertLMPredictionHead: the projection's bias is a parameter twice unless it is tied."""
        vocab, width = self.vocab(c), self.embedding_width(c)
        if self.tied(c):
            return (*self.head_transform(c, width), w.Weight(w.BIAS, vocab))
        bias = w.Weight(w.BIAS, vocab)
        return (*self.head_transform(c, width), *parts.linear(w.HEAD, width, vocab, True), bias)

    def head_transform(self, c: Config, width: int) -> Weights:
        """A projection to the width of the table, and a norm."""
        if not self.transform:
            return ()
        return parts.linear(w.HEAD, self.hidden(c), width, True) + parts.norm(width, "layer")

    def heads(self, c: Config) -> Heads:
        """As many KV heads as query heads."""
        return equal_heads(c, self.hidden(c), "num_attention_heads")


class Ernie(Bert):
    """A table of tasks where switched on."""

    def embeddings(self, c: Config) -> Weights:
        """models/ernie/modeling_ernie.py, ErnieEmbeddings."""
        found = super().embeddings(c)
        if not c.flag("use_task_id"):
            return found
        return found + parts.embedding(c.whole("task_type_vocab_size"), self.hidden(c), w.POSITION)


class BertGeneration(Bert):
    """No segments, no transform, no pooler."""

    pooler = False
    transform = False

    def embeddings(self, c: Config) -> Weights:
        """models/bert_generation/modeling_bert_generation.py, BertGenerationEmbeddings."""
        words = parts.embedding(self.vocab(c), self.hidden(c))
        return words + self.positions(c) + parts.norm(self.hidden(c), "layer")


class PreNorm(Bert):
    """Norms before the sublayers, and one after the last block (RoBERTa-PreLayerNorm)."""

    final_norm = True


class MegatronBert(PreNorm):
    """The same, with no norm after the embeddings (Megatron-BERT, XLM-RoBERTa-XL)."""

    embedding_norm = False


class Xmod(Bert):
    """An adapter a language in each block; norms first where the file says so."""

    def network(self, c: Config) -> Weights:
        """models/xmod/modeling_xmod.py, XmodOutput: a token passes the adapter of one language."""
        width = self.hidden(c)
        narrow = width // c.whole("adapter_reduction_factor")
        languages = len(c.words("languages", ("en_XX",)))
        adapters = (
            w.Weight(w.MLP_IN, narrow, width, languages, min(languages, 1)),
            w.Weight(w.MLP_OUT, width, narrow, languages, min(languages, 1)),
            w.Weight(w.BIAS, narrow + width, 1, languages, min(languages, 1)),
        )
        norm = parts.norm(width, "layer") if c.flag("adapter_layer_norm") else ()
        return super().network(c) + adapters + norm

    def last_norm(self, c: Config) -> Weights:
        """Where the norms come first."""
        return parts.norm(self.hidden(c), "layer") if c.flag("pre_norm") else ()

    def ending(self, c: Config) -> Weights:
        """That norm, and the head."""
        return self.last_norm(c) + self.head(c)


class BigBird(Bert):
    """Biases of query, key and value by a key; its causal class keeps the pooler."""

    attention_bias = "use_bias"
    output_bias = True

    def ending(self, c: Config) -> Weights:
        """models/big_bird/modeling_big_bird.py, BigBirdForCausalLM."""
        return self.pooling(c) + super().ending(c)


class Projected(Bert):
    """Tables of another width than the model, and a projection between where they differ."""

    pooler = False

    def embedding_width(self, c: Config) -> int:
        """The model's own width where the file gives none."""
        return c.whole("embedding_size", self.hidden(c))

    def embeddings(self, c: Config) -> Weights:
        """models/electra/modeling_electra.py, ElectraModel."""
        width, hidden = self.embedding_width(c), self.hidden(c)
        project = parts.linear(w.EMBEDDING, width, hidden, bias=True) if width != hidden else ()
        return super().embeddings(c) + project


class Electra(Projected):
    """The head's bias is a parameter once."""

    def head(self, c: Config) -> Weights:
        """ElectraGeneratorPredictions and ``generator_lm_head``."""
        vocab, width = self.vocab(c), self.embedding_width(c)
        bias = (w.Weight(w.BIAS, vocab),)
        last = bias if self.tied(c) else parts.linear(w.HEAD, width, vocab, bias=True)
        return self.head_transform(c, width) + last


class RoFormer(Projected):
    """Fixed positions of one head's width, rotated into queries and keys."""

    def positions(self, c: Config) -> Weights:
        """models/roformer/modeling_roformer.py, RoFormerEncoder."""
        rows = c.whole("max_position_embeddings")
        return parts.embedding(rows, self.heads(c).key_dim, w.POSITION)


class RemBert(Bert):
    """Tables of one width for the input and another for the output, which are never tied."""

    tied_default = False

    def embedding_width(self, c: Config) -> int:
        """Width of the input tables."""
        return c.whole("input_embedding_size")

    def embeddings(self, c: Config) -> Weights:
        """models/rembert/modeling_rembert.py, RemBertEncoder: always projected."""
        project = parts.linear(w.EMBEDDING, self.embedding_width(c), self.hidden(c), bias=True)
        return super().embeddings(c) + project

    def head(self, c: Config) -> Weights:
        """RemBertLMPredictionHead; its class names no tensors to tie."""
        width = c.whole("output_embedding_size")
        last = parts.linear(w.HEAD, width, self.vocab(c), bias=True)
        return self.head_transform(c, width) + last


class RocBert(Bert):
    """Tables of pronunciations and of shapes beside the words."""

    def embeddings(self, c: Config) -> Weights:
        """models/roc_bert/modeling_roc_bert.py, RoCBertEmbeddings: both tables are always built."""
        sound, shape = c.whole("pronunciation_embed_dim"), c.whole("shape_embed_dim")
        found = (
            *super().embeddings(c),
            *parts.embedding(c.whole("pronunciation_vocab_size"), sound),
            *parts.embedding(c.whole("shape_vocab_size"), shape),
        )
        if not c.flag("concat_input"):
            return found
        width = self.hidden(c)
        joined = width
        joined += sound if c.flag("enable_pronunciation") else 0
        joined += shape if c.flag("enable_shape") else 0
        return found + parts.linear(w.EMBEDDING, joined, width, bias=True)
