"""State spaces with one decay a head: Mamba 2, Bamba, Granite 4, Falcon H1.

The rules are those of transformers 5.24.0, in the file that each class names.
"""

from __future__ import annotations

from typing import NamedTuple

from kvplan.core import weights as w
from kvplan.core.layers import FLOAT32_BYTES
from kvplan.core.states import RecurrentState, StateTensor
from kvplan.core.weights import Weight
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import FULL, Mixer, Weights
from kvplan.readers.families.hybrids import HYBRID, LINEAR, Hybrid
from kvplan.readers.families.mamba import MODEL_BYTES, Mamba


class StateSpace(NamedTuple):
    """The shape of a state space: ``heads × head_dim`` channels, inputs and outputs in groups.

    ``normed`` is on where the output passes a gated norm; ``out_bias`` is the output projection's,
    None for the same as ``bias``.
    """

    hidden: int
    heads: int
    head_dim: int
    state: int
    groups: int
    kernel: int
    bias: bool = False
    out_bias: bool | None = None
    conv_bias: bool = True
    normed: bool = True

    @property
    def channels(self) -> int:
        """Channels of all heads."""
        return self.heads * self.head_dim

    @property
    def convolved(self) -> int:
        """Channels that pass the convolution: the heads' and each group's inputs and outputs."""
        return self.channels + 2 * self.groups * self.state


def state_space(s: StateSpace) -> Mixer:
    """models/mamba2/modeling_mamba2.py, Mamba2Mixer."""
    return Mixer((space_state(s),), space_weights(s))


def space_state(s: StateSpace) -> RecurrentState:
    """The last inputs of the convolution, and the heads' states in float32."""
    ssm = (s.heads, s.head_dim, s.state)
    return RecurrentState(
        tensors=(
            StateTensor(name="conv", shape=(s.convolved, s.kernel), element_bytes=MODEL_BYTES),
            StateTensor(name="ssm", shape=ssm, element_bytes=FLOAT32_BYTES),
        )
    )


def space_weights(s: StateSpace) -> Weights:
    """One projection of gate, convolved channels and steps; step bias, decay and skip a head."""
    out_bias = s.bias if s.out_bias is None else s.out_bias
    return (
        *parts.linear(w.STATE_IN, s.hidden, s.channels + s.convolved + s.heads, s.bias),
        *parts.convolution(
            w.STATE, s.convolved, s.convolved, s.kernel, bias=s.conv_bias, groups=s.convolved
        ),
        Weight(w.STATE, s.heads, 1, 3),
        *parts.norm(s.channels, "rms" if s.normed else "none"),
        *parts.linear(w.STATE_OUT, s.channels, s.hidden, out_bias),
    )


class Mamba2(Mamba):
    """A state space and one norm a block (models/mamba2/modeling_mamba2.py)."""

    def state(self, c: Config) -> Mixer:
        """The state space."""
        space = StateSpace(
            hidden=self.hidden(c),
            heads=c.whole("num_heads"),
            head_dim=c.whole("head_dim"),
            state=c.whole("state_size"),
            groups=c.whole("n_groups"),
            kernel=c.whole("conv_kernel"),
            bias=c.flag("use_bias"),
            conv_bias=c.flag("use_conv_bias"),
        )
        return state_space(space)


class Bamba(Hybrid):
    """State spaces, attention in the blocks of ``attn_layer_indices``.

    models/bamba/configuration_bamba.py.
    """

    def kinds(self, c: Config, count: int) -> list[str]:
        """Derived from the indices alone: the class has no key that lists them."""
        full = set(c.wholes("attn_layer_indices", ()))
        return [FULL if place in full else LINEAR for place in range(count)]

    def state(self, c: Config) -> Mixer:
        """The state space."""
        return state_space(self.space(c))

    def space(self, c: Config) -> StateSpace:
        """The state space that the ``mamba_`` keys describe; the width of a head may be auto."""
        heads = c.whole("mamba_n_heads")
        return StateSpace(
            hidden=self.hidden(c),
            heads=heads,
            head_dim=c.whole_or_auto("mamba_d_head", max(1, self.state_width(c) // heads)),
            state=c.whole("mamba_d_state"),
            groups=c.whole("mamba_n_groups"),
            kernel=c.whole("mamba_d_conv"),
            bias=c.flag("mamba_proj_bias"),
            conv_bias=c.flag("mamba_conv_bias"),
        )

    def state_width(self, c: Config) -> int:
        """Channels of all heads of the state space."""
        return c.whole("mamba_expand") * self.hidden(c)


class GraniteMoeHybrid(Bamba):
    """State spaces and attention as listed; experts where there are any, and a network for all.

    models/granitemoehybrid/modeling_granitemoehybrid.py.
    """

    def kinds(self, c: Config, count: int) -> list[str]:
        """As listed, else state spaces alone."""
        return Hybrid.kinds(self, c, count)

    def derive(self, c: Config, count: int) -> list[str]:
        """A state space in every block."""
        return [LINEAR] * count

    def network(self, c: Config) -> Weights:
        """The network for all tokens, and the experts beside it."""
        hidden, experts = self.hidden(c), c.whole("num_local_experts", 0, least=0)
        found = parts.mlp(hidden, c.whole("shared_intermediate_size"))
        if experts:
            drawn = c.whole("num_experts_per_tok")
            found += parts.experts(hidden, self.inner(c), experts, drawn)
        return found


class FalconH1(Bamba):
    """Attention and a state space side by side in every block.

    models/falcon_h1/modeling_falcon_h1.py.
    """

    def kinds(self, c: Config, count: int) -> list[str]:
        """One kind."""
        return [HYBRID] * count

    def mixer(self, c: Config, kind: str) -> Mixer:
        """Both, in one block."""
        attention, state = self.attention(c), self.state(c)
        return Mixer(attention.caches + state.caches, attention.weights + state.weights)

    def state_width(self, c: Config) -> int:
        """``mamba_d_ssm`` where it is given."""
        return c.whole("mamba_d_ssm") if c.has("mamba_d_ssm") else super().state_width(c)

    def space(self, c: Config) -> StateSpace:
        """With a gated norm only on demand, and a bias of its own on the output."""
        return (
            super()
            .space(c)
            ._replace(out_bias=c.flag("projectors_bias"), normed=c.flag("mamba_rms_norm"))
        )
