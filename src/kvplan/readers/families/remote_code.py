"""Decoders that transformers does not have: their code is published beside their weights.

Their config classes are not here to give defaults, so an absent key ends in a message that names
it. Each class cites the modelling file of the repository it follows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from kvplan.core import weights as w
from kvplan.core.units import round_up
from kvplan.core.weights import Weight
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

Names = Mapping[str, str]


class Renamed(Decoder):
    """A decoder whose config has its own names of the standard keys."""

    names: ClassVar[Names] = {}

    def describe(self, c: Config, options: Options = NO_OPTIONS) -> Description:
        """The description by the type's own names."""
        return super().describe(c.with_names(self.names), options)


class Baichuan(Decoder):
    """Llama with queries, keys and values in one matrix.

    baichuan-inc/Baichuan2-7B-Chat, modeling_baichuan.py: W_pack, and a head never tied.
    """

    attention_bias = False
    mlp_bias = False
    grouped_heads = False
    named_head_dim = False


class InternLm(Decoder):
    """Llama with one key for the biases of its attention (internlm/internlm-7b and internlm2-7b).

    modeling_internlm.py, InternLMAttention; modeling_internlm2.py, InternLM2Attention.
    """

    attention_bias = "bias"
    mlp_bias = False
    named_head_dim = False


class Orion(Decoder):
    """Llama with layer norms (OrionStarAI/Orion-14B-Base, modeling_orion.py)."""

    norm = "layer"
    attention_bias = False
    mlp_bias = False
    named_head_dim = False


class MiniCpm(Decoder):
    """Llama with a tied head, and experts where there are several.

    openbmb/MiniCPM-2B-sft-bf16 and MiniCPM-MoE-8x2B, modeling_minicpm.py.
    """

    mlp_bias = False
    tied_default = True

    def network(self, c: Config) -> Weights:
        """One network, or ``num_experts`` of them and a router."""
        count = c.whole("num_experts", 0, least=0)
        if not count:
            return super().network(c)
        drawn = c.whole("num_experts_per_tok")
        return parts.experts(self.hidden(c), self.inner(c), count, drawn)


class Qwen1(Renamed):
    """Qwen before 1.5: half of ``intermediate_size`` wide, biases on queries, keys and values.

    Qwen/Qwen-7B, modeling_qwen.py, QWenAttention and QWenMLP.
    """

    names: ClassVar[Names] = {"head_dim": "kv_channels"}
    attention_bias = True
    grouped_heads = False

    def attention_weights(self, c: Config, heads: Heads) -> Weights:
        """The output and the MLP have biases unless ``no_bias`` is on."""
        hidden, biased = self.hidden(c), self.biased(c)
        return parts.attention(
            hidden, heads.query, heads.kv, heads.key_dim, bias=True, out_bias=biased
        )

    def network(self, c: Config) -> Weights:
        """w1 and w2, each half as wide as the key says, then c_proj."""
        return parts.mlp(self.hidden(c), self.inner(c) // 2, bias=self.biased(c))

    def biased(self, c: Config) -> bool:
        """Whether the projections back to the model's width have biases."""
        return not c.flag("no_bias", True)


class TeleChat(Renamed):
    """Biases on what leads back to the model's width.

    Tele-AI/telechat-7B, modeling_telechat.py, TelechatAttention and TelechatMLP.
    """

    names: ClassVar[Names] = {
        "num_hidden_layers": "n_layer",
        "num_attention_heads": "n_head",
        "intermediate_size": "ffn_hidden_size",
    }
    context_key = "seq_length"
    attention_bias = False
    output_bias = True
    named_head_dim = False
    tied_default = True

    def network(self, c: Config) -> Weights:
        """Gate and up without, down with a bias."""
        hidden = self.hidden(c)
        return (*parts.mlp(hidden, self.inner(c)), Weight(w.BIAS, hidden))


class Phi3Small(Decoder):
    """Layer norms and biases everywhere; sparse layers mask blocks and keep every token.

    microsoft/Phi-3-small-8k-instruct, modeling_phi3_small.py.
    """

    norm = "layer"
    attention_bias = True
    mlp_bias = True
    named_head_dim = False
    tied_default = True

    def inner(self, c: Config) -> int:
        """Width of the network, under either key."""
        return c.first_whole("ff_intermediate_size", "intermediate_size")


class PhiMsft(Renamed):
    """Phi 1 and 2 under their own keys (microsoft/phi-2 as first published, modeling_phi.py).

    Attention and MLP stand beside each other behind one norm; everything has a bias.
    """

    names: ClassVar[Names] = {
        "num_hidden_layers": "n_layer",
        "num_attention_heads": "n_head",
        "num_key_value_heads": "n_head_kv",
        "hidden_size": "n_embd",
        "intermediate_size": "n_inner",
    }
    context_key = "n_positions"
    norm = "layer"
    norms = 1
    gated = False
    attention_bias = True
    mlp_bias = True
    head_bias = True
    named_head_dim = False

    def inner(self, c: Config) -> int:
        """Four times the width where the config has none."""
        return c.whole("intermediate_size", 4 * self.hidden(c))

    def vocab(self, c: Config) -> int:
        """Padded to a multiple (configuration_phi.py)."""
        return round_up(c.whole("vocab_size"), c.whole("pad_vocab_size_multiple", 64))


class ChatGlm(Renamed):
    """ChatGLM 2 and 3, GLM 4 before transformers had it.

    THUDM/chatglm3-6b, modeling_chatglm.py; the first ChatGLM has keys and layers of its own.
    """

    names: ClassVar[Names] = {
        "num_hidden_layers": "num_layers",
        "num_key_value_heads": "multi_query_group_num",
        "head_dim": "kv_channels",
        "intermediate_size": "ffn_hidden_size",
        "vocab_size": "padded_vocab_size",
    }
    context_key = "seq_length"
    output_bias = "add_bias_linear"
    mlp_bias = "add_bias_linear"

    def describe(self, c: Config, options: Options = NO_OPTIONS) -> Description:
        """By the keys of either generation."""
        if c.has("inner_hidden_size"):
            return ChatGlm1().describe(c, options)
        return super().describe(c, options)

    def heads(self, c: Config) -> Heads:
        """Groups of query heads where ``multi_query_attention`` is on."""
        usual = super().heads(c)
        return usual if c.flag("multi_query_attention") else usual._replace(kv=usual.query)

    def attention_weights(self, c: Config, heads: Heads) -> Weights:
        """Biases on queries, keys and values where either key says so."""
        return parts.attention(
            self.hidden(c),
            heads.query,
            heads.kv,
            heads.key_dim,
            bias=c.flag("add_bias_linear") or c.flag("add_qkv_bias"),
            out_bias=c.flag("add_bias_linear"),
        )

    def block_norms(self, c: Config) -> Weights:
        """Two, RMS unless ``rmsnorm`` is off."""
        return parts.norm(self.hidden(c), self.norm_kind(c), 2)

    def ending(self, c: Config) -> Weights:
        """A final norm unless ``post_layer_norm`` is off."""
        final = c.flag("post_layer_norm", True)
        norm = parts.norm(self.hidden(c), self.norm_kind(c)) if final else ()
        return norm + self.head(c)

    def norm_kind(self, c: Config) -> str:
        """The kind of every norm."""
        return "rms" if c.flag("rmsnorm", True) else "layer"


class ChatGlm1(Renamed):
    """The first ChatGLM: layer norms, biases, an MLP without a gate, a tied head.

    THUDM/chatglm-6b, modeling_chatglm.py.
    """

    names: ClassVar[Names] = {
        "num_hidden_layers": "num_layers",
        "intermediate_size": "inner_hidden_size",
    }
    context_key = "max_sequence_length"
    norm = "layer"
    gated = False
    attention_bias = True
    mlp_bias = True
    grouped_heads = False
    named_head_dim = False
    tied_default = True
