"""Selective scans with a state of their own for each channel: Mamba, Falcon Mamba, Jamba.

The rules are those of transformers 5.24.0, in the file that each class names.
"""

from __future__ import annotations

from typing import NamedTuple

from kvplan.core import weights as w
from kvplan.core.layers import FLOAT32_BYTES
from kvplan.core.stack import Stack
from kvplan.core.states import RecurrentState, StateTensor
from kvplan.core.units import ceil_div
from kvplan.core.weights import Weight
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import FULL, Decoder, Mixer, Weights
from kvplan.readers.families.hybrids import LINEAR, Hybrid

MODEL_BYTES = 2  # what follows the model's 16-bit type


class Scan(NamedTuple):
    """The shape of a selective scan.

    ``rank`` is that of the steps' projection; ``heads`` split the channels where it is not 0, and
    ``inner_norms`` is on where steps, inputs and outputs of the state are normalised.
    """

    hidden: int
    channels: int
    state: int
    kernel: int
    rank: int
    heads: int = 0
    bias: bool = False
    conv_bias: bool = True
    inner_norms: bool = False


def selective_scan(s: Scan) -> Mixer:
    """models/mamba/modeling_mamba.py, MambaMixer."""
    return Mixer((scan_state(s),), scan_weights(s))


def scan_state(s: Scan) -> RecurrentState:
    """The last inputs of the convolution, and the state in float32."""
    by_head = (s.heads, s.channels // s.heads) if s.heads else (s.channels,)
    return RecurrentState(
        tensors=(
            StateTensor(name="conv", shape=(s.channels, s.kernel), element_bytes=MODEL_BYTES),
            StateTensor(name="ssm", shape=(*by_head, s.state), element_bytes=FLOAT32_BYTES),
        )
    )


def scan_weights(s: Scan) -> Weights:
    """Projections, convolution, decay, skip and what derives the steps."""
    found = (
        *parts.linear(w.STATE_IN, s.hidden, 2 * s.channels, s.bias),
        *parts.convolution(
            w.STATE, s.channels, s.channels, s.kernel, bias=s.conv_bias, groups=s.channels
        ),
        Weight(w.STATE_IN, s.rank + 2 * s.state, s.channels),
        *parts.linear(w.STATE_IN, s.rank, s.channels, bias=True),
        Weight(w.STATE, s.channels, s.state),
        Weight(w.STATE, s.channels),
        *parts.linear(w.STATE_OUT, s.channels, s.hidden, s.bias),
    )
    if s.inner_norms:
        found += parts.norm(s.rank + 2 * s.state)
    return found


class Mamba(Decoder):
    """A scan and one norm a block, no feed-forward network.

    models/mamba/configuration_mamba.py; Falcon Mamba's inner norms have no weights.
    """

    norms = 1

    def mixers(self, c: Config) -> Stack[Mixer]:
        """The same scan in every block."""
        return Stack.uniform(self.state(c), self.depth(c))

    def state(self, c: Config) -> Mixer:
        """The scan, its steps' rank a sixteenth of the width where it is ``auto``.

        An ``intermediate_size`` in the file stands above ``expand``.
        """
        hidden = self.hidden(c)
        scan = Scan(
            hidden=hidden,
            channels=c.whole("intermediate_size", c.whole("expand") * hidden),
            state=c.whole("state_size"),
            kernel=c.whole("conv_kernel"),
            rank=c.whole_or_auto("time_step_rank", ceil_div(hidden, 16)),
            bias=c.flag("use_bias"),
            conv_bias=c.flag("use_conv_bias"),
        )
        return selective_scan(scan)

    def networks(self, c: Config) -> Stack[Weights]:
        """None."""
        return Stack.uniform((), self.depth(c))


class Jamba(Hybrid):
    """Scans, an attention each ``attn_layer_period`` blocks, experts each ``expert_layer_period``.

    models/jamba/configuration_jamba.py and modeling_jamba.py.
    """

    attention_bias = False
    mlp_bias = False

    def kinds(self, c: Config, count: int) -> list[str]:
        """Derived from the period alone: the class has no key that lists them."""
        period, offset = c.whole("attn_layer_period"), c.whole("attn_layer_offset", least=0)
        return [FULL if place % period == offset else LINEAR for place in range(count)]

    def state(self, c: Config) -> Mixer:
        """A scan with norms of its steps, inputs and outputs."""
        return selective_scan(scan_of(c, self.hidden(c), inner_norms=True))

    def networks(self, c: Config) -> Stack[Weights]:
        """Experts where the period says and there are two or more, else a dense network."""
        count, experts = self.depth(c), c.whole("num_experts")
        period, offset = c.whole("expert_layer_period"), c.whole("expert_layer_offset", least=0)
        sparse = parts.experts(
            self.hidden(c), self.inner(c), experts, c.whole("num_experts_per_tok")
        )
        order = [int(experts > 1 and place % period == offset) for place in range(count)]
        return Stack((self.network(c), sparse), tuple(order))


def scan_of(c: Config, hidden: int, heads: int = 0, *, inner_norms: bool = False) -> Scan:
    """The scan that the ``mamba_`` keys of a hybrid describe."""
    return Scan(
        hidden=hidden,
        channels=c.whole("mamba_expand") * hidden,
        state=c.whole("mamba_d_state"),
        kernel=c.whole("mamba_d_conv"),
        rank=c.whole_or_auto("mamba_dt_rank", ceil_div(hidden, 16)),
        heads=heads,
        bias=c.flag("mamba_proj_bias"),
        conv_bias=c.flag("mamba_conv_bias"),
        inner_norms=inner_norms,
    )
