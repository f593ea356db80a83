"""Grouped-query attention over every token: Llama and the models built like it.

Rules are those of transformers 5.24.0; each class names the file it follows where the rule is not
the usual one (``models/TYPE/modeling_TYPE.py``).
"""

from __future__ import annotations

from math import isqrt

from kvplan.core import weights as w
from kvplan.core.errors import BadFile
from kvplan.core.stack import Stack
from kvplan.core.weights import Weight
from kvplan.readers.config import MAX_LAYERS, Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import (
    FULL,
    NO_OPTIONS,
    SLIDING,
    Decoder,
    Description,
    Heads,
    Mixer,
    Options,
    Weights,
)
from kvplan.readers.families.nas import KV_HEADS_BY_LAYER, mixers_by_kv_heads


class Llama(Decoder):
    """Attention, gated MLP, two RMS norms."""

    def mixers(self, c: Config) -> Stack[Mixer]:
        """The same attention in each block, unless a list gives each its number of KV heads."""
        return mixers_by_kv_heads(self, c) if c.has(KV_HEADS_BY_LAYER) else super().mixers(c)


class Arcee(Llama):
    """An MLP without a gate."""

    gated = False


class Gemma(Llama):
    """No biases in the MLP."""

    mlp_bias = False


class Glm(Llama):
    """Biases on queries, keys and values alone."""

    output_bias = False
    mlp_bias = False


class Glm4(Glm):
    """Four norms a block: before and after attention and MLP."""

    norms = 4


class HunYuanDense(Llama):
    """Norms of each head's queries and keys; no biases in the MLP."""

    qk_norm = "head"
    mlp_bias = False


class Emu3Text(Llama):
    """No biases (models/emu3/configuration_emu3.py: fixed, not fields of the config)."""

    attention_bias = False
    mlp_bias = False


class HyperClovaX(Llama):
    """Two more norms a block, after attention and MLP, unless ``use_post_norm`` is off."""

    def block_norms(self, c: Config) -> Weights:
        """models/hyperclovax/modeling_hyperclovax.py, HyperCLOVAXDecoderLayer."""
        return parts.norm(self.hidden(c), self.norm, 4 if c.flag("use_post_norm") else 2)


class SeedOss(Llama):
    """The output projection's bias has a key of its own."""

    output_bias = "attention_out_bias"


class Ernie45(Llama):
    """One key for every bias."""

    attention_bias = "use_bias"
    mlp_bias = "use_bias"


class Olmo(Llama):
    """Norms without parameters."""

    norm = "none"
    mlp_bias = False


class Olmo2(Llama):
    """Norms of queries and keys as wide as all heads together."""

    qk_norm = "all"
    mlp_bias = False


class NanoChat(Llama):
    """Norms without parameters, an MLP without a gate or biases."""

    norm = "none"
    gated = False
    mlp_bias = False


class Jais2(Llama):
    """Layer norms and an MLP without a gate."""

    norm = "layer"
    gated = False


class Nemotron(Jais2):
    """As Jais 2: layer norms with a scale and a shift, squared ReLU."""


class Starcoder2(Llama):
    """Layer norms, an MLP without a gate, one key for every bias."""

    norm = "layer"
    gated = False
    attention_bias = "use_bias"
    mlp_bias = "use_bias"


class Cohere(Llama):
    """Attention and MLP beside each other behind one norm; a scale without a shift."""

    norms = 1
    mlp_bias = False

    def query_norm(self, c: Config) -> str:
        """Scales of all heads where ``use_qk_norm`` is on."""
        return "all" if c.flag("use_qk_norm") else ""


class Persimmon(Decoder):
    """Layer norms, biases everywhere, an MLP without a gate, as many KV heads as query heads."""

    norm = "layer"
    gated = False
    attention_bias = True
    mlp_bias = True
    grouped_heads = False
    named_head_dim = False

    def query_norm(self, c: Config) -> str:
        """Layer norms of one head's width where ``qk_layernorm`` is on."""
        return "head_layer" if c.flag("qk_layernorm") else ""


class Phi(Persimmon):
    """Attention and MLP beside each other behind one norm; the head has a bias too."""

    norms = 1
    head_bias = True
    grouped_heads = True
    named_head_dim = True


class Phi3(Llama):
    """No biases; a window in every layer where the config has one."""

    attention_bias = False
    mlp_bias = False


class StableLm(Llama):
    """Layer norms; a scale for each head's queries and keys where ``qk_layernorm`` is on."""

    norm = "layer"
    attention_bias = "use_qkv_bias"
    output_bias = False
    mlp_bias = False
    named_head_dim = False

    def query_norm(self, c: Config) -> str:
        """models/stablelm/modeling_stablelm.py, StableLmLayerNormPerHead."""
        return "all" if c.flag("qk_layernorm") else ""

    def block_norms(self, c: Config) -> Weights:
        """One norm where attention and MLP stand beside each other."""
        return parts.norm(self.hidden(c), self.norm, 1 if c.flag("use_parallel_residual") else 2)


class Helium(Llama):
    """An output projection as wide as the model on both sides, without a bias."""

    def attention_weights(self, c: Config, heads: Heads) -> Weights:
        """models/helium/modeling_helium.py, HeliumAttention: o_proj is hidden × hidden."""
        hidden = self.hidden(c)
        usual = parts.attention(
            hidden,
            heads.query,
            heads.kv,
            heads.key_dim,
            bias=self.says(c, self.attention_bias),
            out_bias=False,
        )
        square = Weight(w.OUTPUT, hidden, hidden)
        return tuple([square if part.role == w.OUTPUT else part for part in usual])


class BitNet(Llama):
    """A norm before each output projection."""

    mlp_bias = False

    def attention_weights(self, c: Config, heads: Heads) -> Weights:
        """models/bitnet/modeling_bitnet.py, BitNetAttention: attn_sub_norm."""
        return super().attention_weights(c, heads) + parts.norm(self.hidden(c))

    def network(self, c: Config) -> Weights:
        """The same file, BitNetMLP: ffn_sub_norm."""
        return super().network(c) + parts.norm(self.inner(c))


class Apertus(Llama):
    """Norms of queries and keys, an MLP without a gate whose activation has two parameters."""

    qk_norm = "head"
    gated = False
    mlp_bias = False

    def network(self, c: Config) -> Weights:
        """activations.py, XIELUActivation: alpha_p and alpha_n, one element each."""
        learned = parts.scalar(1, 2) if c.text("hidden_act", "xielu") == "xielu" else ()
        return super().network(c) + learned


class Apertus15Text(Apertus):
    """A head over the text tokens alone where ``output_vocab_size`` says how many they are."""

    def head(self, c: Config) -> Weights:
        """models/apertus1p5/modeling_apertus1p5.py, Apertus1p5TextForCausalLM."""
        if self.tied(c):
            return ()
        return parts.linear(w.HEAD, self.hidden(c), c.whole("output_vocab_size", self.vocab(c)))


class DiffLlama(Llama):
    """Differential attention: four vectors of one head's width weigh the two halves."""

    mlp_bias = False

    def attention_weights(self, c: Config, heads: Heads) -> Weights:
        """models/diffllama/modeling_diffllama.py: lambda_q1, k1, q2 and k2; its norm has none."""
        return super().attention_weights(c, heads) + parts.scalar(heads.key_dim, 4)


class Doge(Llama):
    """A dynamic mask made of the values, scaled residuals, and retrieved experts on request."""

    qk_norm = "head"

    def attention_weights(self, c: Config, heads: Heads) -> Weights:
        """models/doge/modeling_doge.py, DogeAttention: A and dt_proj make the mask."""
        bias = self.says(c, self.attention_bias)
        mask = parts.linear(w.SCALAR, heads.kv * heads.key_dim, heads.kv, bias)
        return super().attention_weights(c, heads) + mask + parts.scalar(heads.kv)

    def block_norms(self, c: Config) -> Weights:
        """Two norms and the scales of the two residuals (DogeDecoderLayer)."""
        return super().block_norms(c) + parts.scalar(self.hidden(c), 2)

    def network(self, c: Config) -> Weights:
        """One dense network, or with ``is_moe`` beside single neurons chosen by product keys."""
        dense = super().network(c)
        if not c.flag("is_moe"):
            return dense
        count = c.whole("num_experts")
        drawn = min(count, c.whole("num_experts_per_tok"))
        hidden = self.hidden(c)
        return (
            *dense,
            Weight(w.ROUTER, 2 * isqrt(count), hidden),
            Weight(w.EXPERT_IN, 1, hidden, count, drawn),
            Weight(w.EXPERT_OUT, hidden, 1, count, drawn),
        )


class SmolLm3(Llama):
    """Windows, where they are used at all, on the layers without rotary positions."""

    def derive(self, c: Config, count: int) -> list[str]:
        """models/smollm3/configuration_smollm3.py, SmolLM3Config.__post_init__."""
        if not c.flag("use_sliding_window") or self.window(c) is None:
            return [FULL] * count
        if c.has("no_rope_layers"):
            rotary = c.wholes("no_rope_layers")
            if len(rotary) < count:
                raise BadFile(f"The config's no_rope_layers has {len(rotary)} of {count} layers.")
            return [FULL if turned else SLIDING for turned in rotary[:count]]
        interval = c.whole("no_rope_layer_interval")
        return [FULL if (place + 1) % interval else SLIDING for place in range(count)]


class Cwm(Llama):
    """A full layer, then three windows."""

    attention_bias = False

    def derive(self, c: Config, count: int) -> list[str]:
        """models/cwm/configuration_cwm.py, CwmConfig.__post_init__."""
        return [SLIDING if place % 4 else FULL for place in range(count)]


class HrmText(Decoder):
    """Two stacks of layers run in cycles: a cache for every pass, weights for every layer.

    The low stack runs ``L_cycles`` times and the high one once, ``H_cycles`` times over. Norms have
    no parameters, heads are not grouped, and a gate as wide as the queries closes the attention
    (models/hrm_text/modeling_hrm_text.py).
    """

    norm = "none"
    grouped_heads = False

    def describe(self, c: Config, options: Options = NO_OPTIONS) -> Description:
        """The tensors of both stacks, and a block for every pass through a layer."""
        found = super().describe(c, options)
        passes = self.stack_depth(c) * c.whole("H_cycles") * (c.whole("L_cycles", least=0) + 1)
        if passes > MAX_LAYERS:
            raise BadFile(
                f"The config's H_cycles and L_cycles make {passes:,} passes through a layer: more "
                f"than {MAX_LAYERS:,}."
            )
        return found._replace(blocks=Stack(found.blocks.kinds, (0,) * passes))

    def depth(self, c: Config) -> int:
        """Layers of the two stacks together."""
        return 2 * self.stack_depth(c)

    def stack_depth(self, c: Config) -> int:
        """Layers of one stack; ``num_hidden_layers`` unless the config was rewritten since."""
        return c.layers("num_layers_per_stack", c.layers())

    def attention_weights(self, c: Config, heads: Heads) -> Weights:
        """The usual four projections and the gate (HrmTextAttention)."""
        bias = self.says(c, self.attention_bias)
        gate = parts.linear(w.QUERY, self.hidden(c), heads.query * heads.key_dim, bias)
        return super().attention_weights(c, heads) + gate

    def embeddings(self, c: Config) -> Weights:
        """Tokens, and the state that the low stack starts from."""
        return super().embeddings(c) + parts.scalar(self.hidden(c))
