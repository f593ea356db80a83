"""Zamba: a state space in every block, and one transformer block shared by those named hybrid.

The shared block reads the current and the first hidden state side by side, so its attention reads
twice the width of the model. The rules are those of transformers 5.24.0, in the file that each
class names.
"""

from __future__ import annotations

from kvplan.core import weights as w
from kvplan.core.errors import BadFile
from kvplan.core.stack import Stack
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Heads, Mixer, Weights, attention_cache
from kvplan.readers.families.hybrids import HYBRID, LINEAR, Hybrid
from kvplan.readers.families.mamba import scan_of, selective_scan
from kvplan.readers.families.mamba2 import StateSpace, state_space


class Zamba(Hybrid):
    """Scans with heads, and one shared block (models/zamba/modeling_zamba.py)."""

    known = (LINEAR, HYBRID)
    norms = 1
    attention_bias = False
    mlp_bias: str | bool = False

    def derive(self, c: Config, count: int) -> list[str]:
        """The third block is hybrid, and then one each period."""
        if count < 3:
            raise BadFile(f"The config's num_hidden_layers is {count}, and three is the least.")
        period, offset = c.whole("attn_layer_period"), c.whole("attn_layer_offset", least=0)
        later = [HYBRID if place % period == offset else LINEAR for place in range(count - 3)]
        return [LINEAR, LINEAR, HYBRID, *later]

    def mixer(self, c: Config, kind: str) -> Mixer:
        """The state space, behind the shared block's keys and values where it is hybrid."""
        state = self.state(c)
        if kind == LINEAR:
            return state
        hidden = self.hidden(c)
        bridge = parts.linear(w.STATE_IN, hidden, hidden)
        return Mixer((attention_cache(self.heads(c)), *state.caches), bridge + state.weights)

    def state(self, c: Config) -> Mixer:
        """A scan whose channels are split into heads."""
        return selective_scan(scan_of(c, self.hidden(c), c.whole("n_mamba_heads")))

    def networks(self, c: Config) -> Stack[Weights]:
        """None but the shared block's."""
        return Stack.uniform((), self.depth(c))

    def ending(self, c: Config) -> Weights:
        """The shared block, held once for each hybrid block where nothing is tied."""
        hybrids = self.kinds(c, self.depth(c)).count(HYBRID)
        return self.shared(c, hybrids) + super().ending(c)

    def shared(self, c: Config, hybrids: int) -> Weights:
        """All copies of the shared block."""
        return parts.repeat(self.transformer(c), min(1, hybrids) if self.tied(c) else hybrids)

    def transformer(self, c: Config) -> Weights:
        """One copy: attention, network and their norms."""
        hidden, wide = self.hidden(c), self.wide(c)
        heads = self.heads(c)
        return (
            *parts.attention(wide, heads.query, heads.kv, heads.key_dim, out=hidden),
            *self.network(c),
            *parts.norm(wide),
            *parts.norm(hidden),
        )

    def wide(self, c: Config) -> int:
        """The width that the shared attention reads."""
        return c.whole("attention_hidden_size", 0, least=0) or 2 * self.hidden(c)

    def heads(self, c: Config) -> Heads:
        """Heads of the doubled width."""
        query = c.whole("num_attention_heads")
        dim = c.whole("head_dim", 0, least=0) or max(1, 2 * self.hidden(c) // query)
        return Heads(query, c.whole("num_key_value_heads", query), dim, dim)


class Zamba2(Zamba):
    """State spaces, and ``num_mem_blocks`` shared blocks in turn, with adapters for each use.

    models/zamba2/configuration_zamba2.py and modeling_zamba2.py.
    """

    mlp_bias = "add_bias_linear"

    def derive(self, c: Config, count: int) -> list[str]:
        """A fixed list of 54 blocks."""
        linear = [LINEAR]
        return [
            *linear,
            *([*linear * 5, HYBRID] * 7),
            *linear * 4,
            HYBRID,
            *linear * 3,
            HYBRID,
            *linear * 2,
        ]

    def state(self, c: Config) -> Mixer:
        """The state space; its heads share the expanded width."""
        hidden, heads = self.hidden(c), c.whole("n_mamba_heads")
        bias = c.flag("add_bias_linear")
        space = StateSpace(
            hidden=hidden,
            heads=heads,
            head_dim=max(1, c.whole("mamba_expand") * hidden // heads),
            state=c.whole("mamba_d_state"),
            groups=c.whole("mamba_ngroups"),
            kernel=c.whole("mamba_d_conv"),
            bias=bias,
        )
        return state_space(space)

    def inner(self, c: Config) -> int:
        """Four times the width unless given."""
        return c.whole("intermediate_size", 0, least=0) or 4 * self.hidden(c)

    def max_context(self, c: Config) -> int | None:
        """16,384 tokens with the long context."""
        return 16384 if c.flag("use_long_context") else super().max_context(c)

    def shared(self, c: Config, hybrids: int) -> Weights:
        """The copies of all shared blocks, and the adapters that they hold.

        A block has an adapter for each of its uses; without tying every use holds them all.
        """
        blocks = c.whole("num_mem_blocks")
        if self.tied(c):
            copies, adapters = min(blocks, hybrids), hybrids
        else:
            each, more = divmod(hybrids, blocks)
            copies, adapters = hybrids, more * (each + 1) ** 2 + (blocks - more) * each**2
        return parts.repeat(self.transformer(c), copies) + parts.repeat(self.adapter(c), adapters)

    def adapter(self, c: Config) -> Weights:
        """What one use adds to the network, and to queries, keys and values where it is on."""
        hidden, rank, inner = self.hidden(c), c.whole("adapter_rank"), self.inner(c)
        found = parts.linear(w.MLP_IN, hidden, rank) + parts.linear(w.MLP_IN, rank, 2 * inner)
        if c.flag("use_shared_attention_adapter"):
            wide = self.wide(c)
            for role in (w.QUERY, w.KEY, w.VALUE):
                found += parts.linear(role, wide, rank) + parts.linear(role, rank, wide)
        return found
