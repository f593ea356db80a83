"""Kimi delta attention beside latent attention: Kimi Linear, Bailing Hybrid (Ling 3), GLM 5 Next.

The rules are those of transformers 5.24.0, in the file that each class names.
"""

from __future__ import annotations

from typing import NamedTuple

from kvplan.core import weights as w
from kvplan.core.errors import BadFile
from kvplan.core.layers import FLOAT32_BYTES
from kvplan.core.states import LinearAttention, StateTensor
from kvplan.core.weights import Weight
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import (
    FULL,
    NO_OPTIONS,
    Description,
    Family,
    Mixer,
    Options,
    Weights,
)
from kvplan.readers.families.composite import described
from kvplan.readers.families.hybrids import LINEAR, Hybrid, every
from kvplan.readers.families.indexed import OWN, GlmMoeDsa
from kvplan.readers.families.latent import DENSE, SPARSE, Glm4MoeLite
from kvplan.readers.families.mamba import MODEL_BYTES

INDEXED = "indexed_attention"


class Delta(NamedTuple):
    """The shape of a Kimi delta attention: heads with keys as wide as values.

    ``low_rank`` is on where decay and output gate pass a rank of one head's width.
    """

    hidden: int
    heads: int
    dim: int
    kernel: int
    low_rank: bool = True

    @property
    def wide(self) -> int:
        """Elements of all heads."""
        return self.heads * self.dim


def delta_attention(d: Delta) -> Mixer:
    """models/kimi_linear/modeling_kimi_linear.py, KimiLinearDeltaAttention."""
    conv = StateTensor(name="conv", shape=(3 * d.wide, d.kernel), element_bytes=MODEL_BYTES)
    matrix = (d.heads, d.dim, d.dim)
    delta = StateTensor(name="delta", shape=matrix, element_bytes=FLOAT32_BYTES)
    return Mixer((LinearAttention(tensors=(conv, delta)),), delta_weights(d))


def delta_weights(d: Delta) -> Weights:
    """Queries, keys, values, write strength, decay a channel and an output gate."""
    gate = parts.linear(w.STATE_IN, d.hidden, d.wide)
    if d.low_rank:
        gate = parts.linear(w.STATE_IN, d.hidden, d.dim) + parts.linear(w.STATE_IN, d.dim, d.wide)
    return (
        Weight(w.STATE_IN, d.wide, d.hidden, 3),
        *parts.convolution(
            w.STATE, 3 * d.wide, 3 * d.wide, d.kernel, bias=False, groups=3 * d.wide
        ),
        *parts.linear(w.STATE_IN, d.hidden, d.heads),
        *parts.repeat(gate, 2),
        Weight(w.STATE, d.wide + d.heads),
        *parts.norm(d.dim),
        *parts.linear(w.STATE_OUT, d.wide, d.hidden),
    )


class KimiLinear(Hybrid, Glm4MoeLite):
    """Delta attention, latent attention in some blocks; dense networks first, then experts.

    models/kimi_linear/configuration_kimi_linear.py: the published ``linear_attn_config`` counts
    blocks from 1 and stands above the other keys.
    """

    expert_keys = ("num_local_experts",)

    def derive(self, c: Config, count: int) -> list[str]:
        """The blocks of the two lists, else attention after each fourth block."""
        lists = c.section("linear_attn_config")
        if not (lists.has("full_attn_layers") and lists.has("kda_layers")):
            return [FULL if place and place % 4 == 0 else LINEAR for place in range(count)]
        kinds = [""] * count
        for key, kind in (("full_attn_layers", FULL), ("kda_layers", LINEAR)):
            for place in lists.wholes(key, least=1):
                if place > count:
                    raise BadFile(f"The config's {key} names block {place} of {count}.")
                kinds[place - 1] = kind
        return kinds

    def state(self, c: Config) -> Mixer:
        """The delta attention."""
        return delta_attention(self.delta(c))

    def delta(self, c: Config) -> Delta:
        """Its shape, where the published section has the first word."""
        own = c.section("linear_attn_config")
        return Delta(
            hidden=self.hidden(c),
            heads=own.whole("num_heads", c.whole("linear_num_heads")),
            dim=own.whole("head_dim", c.whole("linear_head_dim")),
            kernel=own.whole("short_conv_kernel_size", c.whole("linear_conv_kernel_dim")),
        )

    def leading_dense(self, c: Config) -> int:
        """One unless given."""
        return c.whole("first_k_dense_replace", 1, least=0)

    def tied(self, c: Config) -> bool:
        """Never: the class ties nothing."""
        return False


class BailingHybrid(KimiLinear):
    """Heads as the attention's; decay and gates without ranks (models/bailing_hybrid/)."""

    def derive(self, c: Config, count: int) -> list[str]:
        """Attention at the end of each group."""
        return every(c.whole("layer_group_size"), count)

    def delta(self, c: Config) -> Delta:
        """Its shape; a config that was saved again has it under keys of its own."""
        return Delta(
            hidden=self.hidden(c),
            heads=c.whole("linear_num_heads", c.whole("num_attention_heads")),
            dim=c.whole("linear_head_dim", c.whole("head_dim")),
            kernel=c.whole("linear_conv_kernel_dim", c.whole("short_conv_kernel_size")),
            low_rank=False,
        )

    def attention(self, c: Config, window: int | None = None) -> Mixer:
        """With one gate a head on the output."""
        caches, weights = super().attention(c, window)
        gate = parts.linear(w.QUERY, self.hidden(c), c.whole("num_attention_heads"))
        return Mixer(caches, weights + gate)


class Glm5NextText(KimiLinear, GlmMoeDsa):
    """Latent attention with an indexer over pools of tokens, hyper-connections around both halves.

    models/glm5_next/configuration_glm5_next.py and modeling_glm5_next.py.
    """

    known = (LINEAR, INDEXED, FULL)
    expert_keys = ("n_routed_experts",)

    def kinds(self, c: Config, count: int) -> list[str]:
        """Linear blocks, and attention with an indexer of its own or the choice of an earlier."""
        kinds, indexers = super().kinds(c, count), self.indexers(c, count)
        return [
            kind if kind == LINEAR else indexer
            for kind, indexer in zip(kinds, indexers, strict=True)
        ]

    def derive(self, c: Config, count: int) -> list[str]:
        """Attention in each fourth block."""
        return every(4, count, INDEXED)

    def mixer(self, c: Config, kind: str) -> Mixer:
        """Delta attention, or latent attention with or without an indexer."""
        return self.state(c) if kind == LINEAR else self.indexed(c, kind == OWN)

    def index_width(self, c: Config) -> int:
        """A key, its gate within the pool, and whether the token counts."""
        return 2 * c.whole("index_head_dim") + 1

    def indexer(self, c: Config, query_width: int) -> Weights:
        """With the pools' gate and positions."""
        dim = c.whole("index_head_dim")
        pooling = Weight(w.INDEXER, dim, self.hidden(c) + c.whole("index_kpool"))
        return (*super().indexer(c, query_width), pooling)

    def network_kinds(self, c: Config, count: int) -> list[str]:
        """As listed, else three dense ones first."""
        if c.has("mlp_layer_types"):
            return super().network_kinds(c, count)
        return [DENSE if place < 3 else SPARSE for place in range(count)]

    def block_norms(self, c: Config) -> Weights:
        """Two norms, and a hyper-connection before attention and network."""
        streams = c.whole("hc_mult")
        connection = parts.hyper_connection(self.hidden(c), streams, (2 + streams) * streams, 3)
        return super().block_norms(c) + parts.repeat(connection, 2)

    def tied(self, c: Config) -> bool:
        """As the config says."""
        return Hybrid.tied(self, c)


class KimiK3(Family):
    """Kimi Linear's blocks behind an encoder, with parts that only its own code describes.

    What it keeps follows from the text section (moonshotai/Kimi-K3, configuration_kimi_k3.py).
    """

    def describe(self, c: Config, options: Options = NO_OPTIONS) -> Description:
        """The text model's caches."""
        found = described(c.section("text_config", "kimi_linear"), options)
        reason = "kimi_k3 has residual attention and latent experts that transformers does not"
        return found._replace(uncounted=reason)
