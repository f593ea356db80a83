"""Short convolutions beside attention: LFM2, LFM2 with experts, LFM3.

The rules are those of transformers 5.24.0, in the file that each class names.
"""

from __future__ import annotations

from collections.abc import Sequence

from kvplan.core import weights as w
from kvplan.core.stack import Stack
from kvplan.core.states import ConvolutionState, StateTensor
from kvplan.core.units import round_up
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import FULL, SLIDING, Heads, Mixer, Weights
from kvplan.readers.families.hybrids import Hybrid
from kvplan.readers.families.mamba import MODEL_BYTES

CONVOLUTION = "conv"


class Lfm2(Hybrid):
    """Attention where listed, convolutions elsewhere (models/lfm2/modeling_lfm2.py).

    ``full_attn_idxs``, ``tie_embedding`` and ``block_ff_dim`` are older keys
    (configuration_lfm2.py, __post_init__).
    """

    known: Sequence[str] = (CONVOLUTION, FULL)
    attention_bias: str | bool = False
    mlp_bias = False
    qk_norm = "head"

    def derive(self, c: Config, count: int) -> list[str]:
        """Attention in the listed blocks, in all where none are listed."""
        if not c.has("full_attn_idxs"):
            return [FULL] * count
        full = set(c.wholes("full_attn_idxs"))
        return [FULL if place in full else CONVOLUTION for place in range(count)]

    def state(self, c: Config) -> Mixer:
        """Two gates and the value pass one projection; the value is convolved."""
        hidden, kernel, bias = self.hidden(c), c.whole("conv_L_cache"), c.flag("conv_bias")
        tensor = StateTensor(name="conv", shape=(hidden, kernel), element_bytes=MODEL_BYTES)
        weights = (
            *parts.linear(w.STATE_IN, hidden, 3 * hidden, bias),
            *parts.convolution(w.STATE, hidden, hidden, kernel, bias=bias, groups=hidden),
            *parts.linear(w.STATE_OUT, hidden, hidden, bias),
        )
        return Mixer((ConvolutionState(tensors=(tensor,)),), weights)

    def inner(self, c: Config) -> int:
        """Two thirds of the named width, scaled and rounded up, unless adjusting is off."""
        inner = c.first_whole("block_ff_dim", "intermediate_size")
        if not c.flag("block_auto_adjust_ff_dim"):
            return inner
        scaled = int(c.number("block_ffn_dim_multiplier", 1.0) * (2 * inner // 3))
        return round_up(max(1, scaled), c.whole("block_multiple_of"))

    def tied(self, c: Config) -> bool:
        """The older key stands above the newer."""
        return c.flag("tie_embedding", super().tied(c))


class Lfm2Moe(Lfm2):
    """Experts behind ``num_dense_layers`` dense networks (models/lfm2_moe/modeling_lfm2_moe.py)."""

    def derive(self, c: Config, count: int) -> list[str]:
        """Nothing to derive from: the class needs the list."""
        return c.words("layer_types")

    def inner(self, c: Config) -> int:
        """As named."""
        return c.whole("intermediate_size")

    def networks(self, c: Config) -> Stack[Weights]:
        """Dense networks first, then experts."""
        depth = self.depth(c)
        dense = min(depth, c.whole("num_dense_layers", least=0))
        sparse = parts.experts(
            self.hidden(c),
            c.whole("moe_intermediate_size"),
            c.whole("num_experts"),
            c.whole("num_experts_per_tok"),
        )
        return Stack((self.network(c), sparse), (0,) * dense + (1,) * (depth - dense))


class Lfm3(Lfm2):
    """Windows too, gates a head, and norms on both sides (models/lfm3/modeling_lfm3.py)."""

    known = (CONVOLUTION, SLIDING, FULL)
    attention_bias = "attention_bias"

    def derive(self, c: Config, count: int) -> list[str]:
        """Of four blocks the third is attention and the first a window, but for the very first."""
        pattern = (SLIDING, CONVOLUTION, FULL, CONVOLUTION)
        kinds = [pattern[place % 4] for place in range(count)]
        return [CONVOLUTION, *kinds[1:]] if kinds else kinds

    def attention_weights(self, c: Config, heads: Heads) -> Weights:
        """With one gate a head."""
        found = super().attention_weights(c, heads)
        if c.flag("use_attention_gate"):
            found += parts.linear(w.QUERY, self.hidden(c), heads.query)
        return found

    def block_norms(self, c: Config) -> Weights:
        """Two, or four with ``use_sandwich_norm``."""
        return parts.norm(self.hidden(c), self.norm, 4 if c.flag("use_sandwich_norm") else 2)

    def inner(self, c: Config) -> int:
        """As named."""
        return c.whole("intermediate_size")

    def tied(self, c: Config) -> bool:
        """The newer key alone."""
        return Hybrid.tied(self, c)
