"""Nemotron-H and Nemotron 3: blocks of one part each, a state space, an attention or a network.

models/nemotron_h/configuration_nemotron_h.py and modeling_nemotron_h.py (transformers 5.24.0).
"""

from __future__ import annotations

from kvplan.core import weights as w
from kvplan.core.errors import BadFile
from kvplan.core.layers import NoCache
from kvplan.core.stack import Stack
from kvplan.readers.config import MAX_LAYERS, Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import FULL, Mixer, Weights, layer_kinds
from kvplan.readers.families.hybrids import LINEAR, Hybrid
from kvplan.readers.families.mamba2 import StateSpace, state_space

DENSE, SPARSE = "mlp", "moe"
LETTERS = {"M": LINEAR, "E": SPARSE, "*": FULL, "-": DENSE}


class NemotronH(Hybrid):
    """One norm and one part a block; networks keep nothing and are not gated."""

    known = (LINEAR, FULL, SPARSE, DENSE)
    norms = 1
    gated = False
    attention_bias = False

    def depth(self, c: Config) -> int:
        """Blocks as listed, whatever ``num_hidden_layers`` says."""
        return len(self.listed(c))

    def kinds(self, c: Config, count: int) -> list[str]:
        """The blocks as listed."""
        return layer_kinds(c, count, self.listed(c), known=self.known)

    def listed(self, c: Config) -> list[str]:
        """The list, else the pattern of letters, else one block of each kind."""
        if c.has("layer_types"):
            listed = c.words("layer_types")
        else:
            pattern = c.text("hybrid_override_pattern", "ME*-")
            unknown = set(pattern) - LETTERS.keys()
            if unknown:
                raise BadFile(
                    f"The config's hybrid_override_pattern has {min(unknown)!r}: "
                    f"not one of {' '.join(LETTERS)}."
                )
            listed = [LETTERS[letter] for letter in pattern]
        if len(listed) > MAX_LAYERS:
            raise BadFile(f"The config lists {len(listed):,} layers: more than {MAX_LAYERS:,}.")
        return listed

    def mixer(self, c: Config, kind: str) -> Mixer:
        """The one part of a block."""
        if kind == DENSE:
            return Mixer((NoCache(),), self.network(c))
        if kind == SPARSE:
            return Mixer((NoCache(),), self.mixture(c))
        return super().mixer(c, kind)

    def state(self, c: Config) -> Mixer:
        """The state space; some of its keys had other names once."""
        space = StateSpace(
            hidden=self.hidden(c),
            heads=c.whole("mamba_num_heads"),
            head_dim=c.whole("mamba_head_dim"),
            state=c.whole("ssm_state_size"),
            groups=c.first_whole("mamba_n_groups", "n_groups"),
            kernel=c.first_whole("mamba_d_conv", "conv_kernel"),
            bias=c.flag("use_bias"),
            conv_bias=c.flag("mamba_conv_bias", c.flag("use_conv_bias")),
        )
        return state_space(space)

    def mixture(self, c: Config) -> Weights:
        """Experts, within ``moe_latent_size`` where it is given, and one for all tokens."""
        hidden, bias = self.hidden(c), c.flag("mlp_bias")
        latent = c.whole("moe_latent_size") if c.has("moe_latent_size") else 0
        count = c.whole("n_routed_experts")
        shared = c.whole("moe_shared_expert_intermediate_size", 0, least=0) or self.inner(c)
        found = parts.experts(
            latent or hidden,
            c.whole("moe_intermediate_size"),
            count,
            c.whole("num_experts_per_tok"),
            gated=False,
            routed_from=hidden,
        )
        if latent:
            found += parts.linear(w.MLP_IN, hidden, latent, bias)
            found += parts.linear(w.MLP_OUT, latent, hidden, bias)
        return found + parts.mlp(hidden, shared, gated=False, bias=bias)

    def networks(self, c: Config) -> Stack[Weights]:
        """None: they are blocks of their own."""
        return Stack.uniform((), self.depth(c))

    def tied(self, c: Config) -> bool:
        """Never: the class ties nothing."""
        return False
