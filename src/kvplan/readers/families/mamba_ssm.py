"""Models in the form of the ``mamba_ssm`` package: state spaces, attention in the blocks named.

Their config.json has no model_type; ``ssm_cfg`` tells them. The rules are those of mamba_ssm 2.2,
in the file that each method names. States are counted as transformers keeps those of the same
layers, in float32.
"""

from __future__ import annotations

from kvplan.core import weights as w
from kvplan.core.states import ConvolutionState, StateTensor
from kvplan.core.units import ceil_div, round_up
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import FULL, Heads, Mixer, Weights, attention_cache
from kvplan.readers.families.hybrids import LINEAR, Hybrid
from kvplan.readers.families.mamba import MODEL_BYTES, Scan, selective_scan
from kvplan.readers.families.mamba2 import StateSpace, state_space

MLP_MULTIPLE = 128  # modules/mlp.py, GatedMLP


class MambaSsm(Hybrid):
    """A mixer and one norm a block, a gated network where ``d_intermediate`` gives it a width.

    models/mixer_seq_simple.py, create_block.
    """

    mlp_bias = False
    tied_default = True

    def kinds(self, c: Config, count: int) -> list[str]:
        """Attention in the blocks of ``attn_layer_idx``."""
        full = set(c.wholes("attn_layer_idx", ()))
        return [FULL if place in full else LINEAR for place in range(count)]

    def state(self, c: Config) -> Mixer:
        """``ssm_cfg.layer``: a selective scan, or a state space of heads."""
        s = c.section("ssm_cfg", c.model_type)
        if s.text("layer", "Mamba1") == "Mamba2":
            return state_space(self.space(c, s))
        scan = Scan(
            hidden=self.hidden(c),
            channels=s.whole("expand", 2) * self.hidden(c),
            state=s.whole("d_state", 16),
            kernel=s.whole("d_conv", 4),
            rank=s.whole_or_auto("dt_rank", ceil_div(self.hidden(c), 16)),
            bias=s.flag("bias"),
            conv_bias=s.flag("conv_bias", True),
        )
        return selective_scan(scan)

    def space(self, c: Config, s: Config) -> StateSpace:
        """modules/mamba2.py, Mamba2."""
        head_dim = s.whole("headdim", 64)
        return StateSpace(
            hidden=self.hidden(c),
            heads=max(1, s.whole("expand", 2) * self.hidden(c) // head_dim),
            head_dim=head_dim,
            state=s.whole("d_state", 128),
            groups=s.whole("ngroups", 1),
            kernel=s.whole("d_conv", 4),
            bias=s.flag("bias"),
            conv_bias=s.flag("conv_bias", True),
            normed=s.flag("rmsnorm", True),
        )

    def attention(self, c: Config, window: int | None = None) -> Mixer:
        """Keys and values, and the last inputs of a convolution over all three where there is one.

        modules/mha.py, MHA.
        """
        a = c.section("attn_cfg", c.model_type)
        heads, kernel = self.attention_heads(c, a), a.whole("d_conv", 0, least=0)
        width = heads.key_dim * (heads.query + 2 * heads.kv)
        found = (
            *parts.linear(w.QUERY, self.hidden(c), width, a.flag("qkv_proj_bias", True)),
            *parts.linear(
                w.OUTPUT, heads.key_dim * heads.query, self.hidden(c), a.flag("out_proj_bias", True)
            ),
        )
        cache = attention_cache(heads)
        if not kernel:
            return Mixer((cache,), found)
        found += parts.convolution(w.STATE, width, width, kernel, bias=True, groups=width)
        tensor = StateTensor(name="conv", shape=(width, kernel), element_bytes=MODEL_BYTES)
        return Mixer((cache, ConvolutionState(tensors=(tensor,))), found)

    def attention_heads(self, c: Config, a: Config) -> Heads:
        """Query heads, KV heads (all of them where absent) and the width of one."""
        query = a.whole("num_heads")
        dim = a.whole("head_dim", max(1, self.hidden(c) // query))
        return Heads(query, a.whole("num_heads_kv", query), dim, dim)

    def network(self, c: Config) -> Weights:
        """A gated network, or none."""
        inner = c.whole("d_intermediate", 0, least=0)
        return parts.mlp(self.hidden(c), round_up(inner, MLP_MULTIPLE)) if inner else ()

    def block_norms(self, c: Config) -> Weights:
        """One, and one before a network."""
        return parts.norm(self.hidden(c), self.norm, 2 if self.network(c) else 1)

    def hidden(self, c: Config) -> int:
        """Under its own name."""
        return c.whole("d_model")

    def depth(self, c: Config) -> int:
        """Under its own name."""
        return c.layers("n_layer")

    def vocab(self, c: Config) -> int:
        """Rows padded to a multiple."""
        return round_up(c.whole("vocab_size"), c.whole("pad_vocab_size_multiple", 8))

    def tied(self, c: Config) -> bool:
        """Under its own name."""
        return c.flag("tie_embeddings", self.tied_default)
