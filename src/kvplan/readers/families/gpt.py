"""The decoders of the GPT era: heads that are not grouped, layer norms, an MLP four times as wide.

Rules are those of transformers 5.24.0, ``models/TYPE/modeling_TYPE.py``.
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
    Options,
    Weights,
)
from kvplan.readers.families.encoder_decoder import reading_encoder


class Gpt(Decoder):
    """Biases everywhere, two layer norms a block, and as many KV heads as query heads.

    ``positions`` says whether positions are learned, ``spare_positions`` how many rows stand before
    the first; ``inner_key`` names the width of the MLP, four times the model's where it is absent
    (or the class reads none).
    """

    norm = "layer"
    gated = False
    attention_bias: str | bool = True
    mlp_bias: str | bool = True
    grouped_heads = False
    named_head_dim = False
    positions: bool = False
    spare_positions: int = 0
    inner_key: str = ""

    def inner(self, c: Config) -> int:
        """The width of the MLP."""
        usual = 4 * self.hidden(c)
        return c.whole(self.inner_key, usual) if self.inner_key else usual

    def embeddings(self, c: Config) -> Weights:
        """Tokens, and positions where they are learned."""
        tokens = super().embeddings(c)
        if not self.positions:
            return tokens
        rows = c.whole(self.context_key) + self.spare_positions
        return tokens + parts.embedding(rows, self.hidden(c), w.POSITION)


class CrossReading(Gpt):
    """A GPT that can be built with an attention over an encoder in each block.

    Nothing is kept for it where the decoder runs alone.
    """

    def describe(self, c: Config, options: Options = NO_OPTIONS) -> Description:
        """The decoder, with a cache over the encoder where the asker says how long that is."""
        return reading_encoder(super().describe(c, options), c, self.heads(c), options)

    def attention_weights(self, c: Config, heads: Heads) -> Weights:
        """The attention, and with ``add_cross_attention`` a second one behind a norm."""
        found = super().attention_weights(c, heads)
        if not c.flag("add_cross_attention"):
            return found
        width = self.hidden(c)
        over_encoder = parts.attention(width, heads.query, heads.query, heads.key_dim, bias=True)
        return found + over_encoder + parts.norm(width, self.norm)


class Gpt2(CrossReading):
    """Learned positions."""

    positions = True
    inner_key = "n_inner"

    def heads(self, c: Config) -> Heads:
        """One KV head where ``attention_head_type`` says so.

        bigcode/santacoder, modeling_gpt2_mq.py: a class of its own that keeps the type ``gpt2``.
        """
        usual = super().heads(c)
        shared = c.text("attention_head_type") == "multiquery"
        return usual._replace(kv=1) if shared else usual


class GptBigCode(Gpt2):
    """One KV head for all queries, unless ``multi_query`` is off."""

    def heads(self, c: Config) -> Heads:
        """models/gpt_bigcode/modeling_gpt_bigcode.py, GPTBigCodeAttention."""
        usual = super().heads(c)
        return usual._replace(kv=1) if c.flag("multi_query", True) else usual


class OpenAiGpt(Gpt2):
    """GPT 1: the norms follow, so none is left for the end.

    transformers keeps nothing of it and reads the whole text again for each token; the answer is
    what a decoder with these heads keeps.
    """

    inner_key = ""
    final_norm = False


class GptNeo(Gpt):
    """Biases on the outputs alone; its local layers keep every token and mask the older ones."""

    positions = True
    attention_bias = False
    output_bias = True
    inner_key = "intermediate_size"


class GptNeoX(Gpt):
    """Rotary positions; a key for the attention's biases."""

    attention_bias = "attention_bias"
    inner_key = "intermediate_size"


class GptNeoXJapanese(Gpt):
    """No biases but one, on the output of the last attention."""

    attention_bias = False
    mlp_bias = False

    def inner(self, c: Config) -> int:
        """A multiple of the model's width."""
        return self.hidden(c) * c.whole("intermediate_multiple_size")

    def ending(self, c: Config) -> Weights:
        """models/gpt_neox_japanese/modeling_gpt_neox_japanese.py: dense_bias of the last layer."""
        last = parts.norm(self.hidden(c)) if self.depth(c) else ()
        return parts.as_role(last, w.BIAS) + super().ending(c)


class GptJ(Gpt):
    """Attention and MLP beside each other behind one norm; biases on the MLP and the head."""

    norms = 1
    attention_bias = False
    head_bias = True
    inner_key = "n_inner"


class Bloom(Gpt):
    """A norm behind the embedding; the older key of the width wins."""

    context_key = "seq_length"

    def hidden(self, c: Config) -> int:
        """models/bloom/configuration_bloom.py: n_embed, where the file has it."""
        return c.first_whole("n_embed", "hidden_size")

    def embeddings(self, c: Config) -> Weights:
        """Tokens and their norm."""
        return super().embeddings(c) + parts.norm(self.hidden(c), self.norm)


class Mpt(Gpt):
    """No biases, those of the norms taken away too."""

    norm = "rms"
    attention_bias = False
    mlp_bias = False
    context_key = "max_seq_len"

    def heads(self, c: Config) -> Heads:
        """``attn_config.kv_n_heads`` (replit/replit-code-v1_5-3b), where transformers reads none.

        llama.cpp of February 2025, convert_hf_to_gguf.py, MPTModel.
        """
        usual = super().heads(c)
        return usual._replace(kv=c.section("attn_config").whole("kv_n_heads", usual.query))


class Opt(Gpt):
    """Learned positions from the third row on, and an embedding that may be narrower."""

    positions = True
    spare_positions = 2
    attention_bias = "enable_bias"
    mlp_bias = "enable_bias"
    inner_key = "ffn_dim"

    def narrow(self, c: Config) -> int:
        """Width of the token embedding."""
        return c.whole("word_embed_proj_dim", self.hidden(c))

    def embeddings(self, c: Config) -> Weights:
        """Tokens, positions, and the two projections where the widths differ."""
        hidden, narrow = self.hidden(c), self.narrow(c)
        rows = c.whole(self.context_key) + self.spare_positions
        found = (
            *parts.embedding(self.vocab(c), narrow),
            *parts.embedding(rows, hidden, w.POSITION),
        )
        if narrow != hidden:
            found += parts.linear(w.EMBEDDING, narrow, hidden, count=2)
        return found

    def block_norms(self, c: Config) -> Weights:
        """Two norms, without parameters where the config says so."""
        affine = c.flag("layer_norm_elementwise_affine", True)
        return parts.norm(self.hidden(c), self.norm if affine else "none", self.norms)

    def ending(self, c: Config) -> Weights:
        """A final norm only where norms stand before the layers (OPTDecoder)."""
        before = c.flag("do_layer_norm_before") and not c.flag("_remove_final_layer_norm")
        affine = c.flag("layer_norm_elementwise_affine", True)
        final = parts.norm(self.hidden(c), self.norm) if before and affine else ()
        return final + self.head(c)

    def head(self, c: Config) -> Weights:
        """As narrow as the embedding."""
        return () if self.tied(c) else parts.linear(w.HEAD, self.narrow(c), self.vocab(c))


class Xglm(CrossReading):
    """Positions are computed."""

    inner_key = "ffn_dim"


class BioGpt(Gpt):
    """Learned positions from the third row on."""

    positions = True
    spare_positions = 2
    inner_key = "intermediate_size"


class Ctrl(Gpt):
    """Positions are computed; the head has a bias."""

    head_bias = True
    inner_key = "dff"


class Xlm(Gpt):
    """A norm behind the embeddings and none at the end; languages embedded where there are several.

    Its language-model head is that of ``asm`` off.
    """

    positions = True
    final_norm = False
    head_bias = True

    def embeddings(self, c: Config) -> Weights:
        """models/xlm/modeling_xlm.py, XLMModel."""
        hidden, languages = self.hidden(c), c.whole("n_langs", 1)
        found = super().embeddings(c) + parts.norm(hidden, self.norm)
        if languages > 1 and c.flag("use_lang_emb"):
            found += parts.embedding(languages, hidden, w.POSITION)
        return found
