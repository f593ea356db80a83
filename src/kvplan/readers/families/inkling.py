"""Attention with four short convolutions beside it: Inkling, Inkling 2, and Inkling 2 with loops.

Keys, values, and what attention and network add to the hidden state are convolved over the last
tokens; each convolution keeps its inputs in float32. The rules are those of transformers 5.24.0, in
the file that each class names.
"""

from __future__ import annotations

from typing import NamedTuple

from kvplan.core import weights as w
from kvplan.core.errors import BadFile
from kvplan.core.layers import FLOAT32_BYTES
from kvplan.core.stack import Stack
from kvplan.core.states import ConvolutionState, StateTensor
from kvplan.core.weights import Weight
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import (
    NO_OPTIONS,
    Description,
    Heads,
    Mixer,
    Options,
    Weights,
    attention_cache,
    layer_kinds,
)
from kvplan.readers.families.hybrids import HYBRID, HYBRID_SLIDING, Hybrid
from kvplan.readers.families.latent import DENSE, SPARSE

# configuration_inkling2_loop.py, __post_init__: the keys of the published ``loop_config``.
LOOP_KEYS = {
    "core_start": "loop_layer_index_start",
    "core_end": "loop_layer_index_end",
    "num_passes": "loop_num_passes",
    "gate_rank": "loop_gate_rank",
}


class Convolved(Hybrid):
    """What the three have in common: two kinds of attention with heads of their own."""

    known = (HYBRID, HYBRID_SLIDING)
    attention_bias = False
    mlp_bias = False

    def derive(self, c: Config, count: int) -> list[str]:
        """Attention over all tokens in each sixth block."""
        return [HYBRID_SLIDING if (place + 1) % 6 else HYBRID for place in range(count)]

    def mixer(self, c: Config, kind: str) -> Mixer:
        """Attention, and the convolutions behind it."""
        sliding = kind == HYBRID_SLIDING
        heads = self.own_heads(c, sliding)
        cache = attention_cache(heads, c.whole("sliding_window_size") if sliding else None)
        weights = self.attention_weights(c, heads) + self.positions(c, heads.query, sliding)
        return Mixer((cache, self.convolutions(c, heads)), weights)

    def own_heads(self, c: Config, sliding: bool) -> Heads:
        """The heads of one kind of attention."""
        prefix = "swa_" if sliding else ""
        dim = c.whole(f"{prefix}head_dim")
        query = c.whole(f"{prefix}num_attention_heads")
        return Heads(query, c.whole(f"{prefix}num_key_value_heads"), dim, dim)

    def convolutions(self, c: Config, heads: Heads) -> ConvolutionState:
        """The inputs of the four: tensor parallelism cuts those of keys and values alone."""
        kernel, hidden, keys = c.whole("conv_kernel_size"), self.hidden(c), heads.kv * heads.key_dim
        tensors = [
            StateTensor(name=name, shape=(width, kernel), element_bytes=FLOAT32_BYTES, split=split)
            for name, width, split in (
                ("key conv", keys, 0),
                ("value conv", keys, 0),
                ("attention conv", hidden, None),
                ("network conv", hidden, None),
            )
        ]
        return ConvolutionState(tensors=tuple(tensors))

    def positions(self, c: Config, heads: int, sliding: bool) -> Weights:
        """Relative positions: a query a head, and a row for each distance."""
        rank = c.whole("d_rel")
        extent = c.whole("sliding_window_size") if sliding else c.whole("rel_extent")
        return (Weight(w.QUERY, heads * rank, self.hidden(c)), Weight(w.POSITION, rank, extent))

    def embeddings(self, c: Config) -> Weights:
        """The embedding and its norm."""
        return super().embeddings(c) + parts.norm(self.hidden(c))

    def tied(self, c: Config) -> bool:
        """Never: the classes tie nothing."""
        return False


class Inkling(Convolved):
    """Experts with a sink for the shared ones (models/inkling/modeling_inkling.py)."""

    qk_norm = "head"

    def derive(self, c: Config, count: int) -> list[str]:
        """Windows in the listed blocks, where they are listed."""
        if not c.has("local_layer_ids"):
            return super().derive(c, count)
        local = set(c.wholes("local_layer_ids"))
        return [HYBRID_SLIDING if place in local else HYBRID for place in range(count)]

    def attention_weights(self, c: Config, heads: Heads) -> Weights:
        """With the kernels of the convolutions."""
        kernel, keys = c.whole("conv_kernel_size"), heads.kv * heads.key_dim
        kernels = Weight(w.STATE, 2 * keys + 2 * self.hidden(c), kernel)
        return (*super().attention_weights(c, heads), kernels)

    def networks(self, c: Config) -> Stack[Weights]:
        """As listed, else ``dense_mlp_idx`` dense ones first."""
        count = self.depth(c)
        first = c.whole("dense_mlp_idx", 0, least=0)
        derived = [DENSE if place < first else SPARSE for place in range(count)]
        known = (DENSE, SPARSE)
        kinds = layer_kinds(c, count, derived, key="mlp_layer_types", known=known)
        return Stack.named(kinds, {DENSE: self.network(c), SPARSE: self.mixture(c)})

    def network(self, c: Config) -> Weights:
        """A dense network and its scale."""
        inner = c.first_whole("dense_intermediate_size", "intermediate_size")
        return parts.mlp(self.hidden(c), inner) + parts.scalar(1)

    def mixture(self, c: Config) -> Weights:
        """Routed and shared experts in one router with one scale.

        Where the dense width has a key of its own, ``intermediate_size`` is that of an expert
        (configuration_inkling.py, __post_init__).
        """
        hidden = self.hidden(c)
        older = c.has("dense_intermediate_size")
        inner = c.whole("intermediate_size" if older else "moe_intermediate_size")
        routed, shared = c.whole("n_routed_experts"), c.whole("n_shared_experts", 0, least=0)
        return (
            *parts.experts(hidden, inner, routed, c.whole("num_experts_per_tok")),
            *parts.repeat(parts.mlp(hidden, inner), shared),
            Weight(w.ROUTER, shared, hidden),
            *parts.scalar(1),
        )


class Place(NamedTuple):
    """What tells the blocks of Inkling 2 apart; ``passes`` is 0 for a block outside the loop."""

    sliding: bool
    first: bool
    passes: int


class Inkling2(Convolved):
    """Blocks that read earlier ones by attention (models/inkling2/modeling_inkling2.py)."""

    def mixers(self, c: Config) -> Stack[Mixer]:
        """One mixer a kind of block."""
        kinds = self.kinds(c, self.depth(c))
        passes = self.passes(c, len(kinds))
        places = Stack.of(
            [
                Place(kind == HYBRID_SLIDING, place == 0, passes[place])
                for place, kind in enumerate(kinds)
            ]
        )
        return Stack(tuple([self.block(c, place) for place in places.kinds]), places.order)

    def passes(self, c: Config, count: int) -> list[int]:
        """No block is in a loop."""
        return [0] * count

    def block(self, c: Config, place: Place) -> Mixer:
        """Full attention normalises queries, keys and values apart, and picks inputs for each.

        The first block has nothing to pick from before its attention.
        """
        hidden, inputs = self.hidden(c), 1 if place.sliding else 3
        heads = self.own_heads(c, place.sliding)
        caches, weights = self.mixer(c, HYBRID_SLIDING if place.sliding else HYBRID)
        weights += (
            *self.kernels(c, heads, dynamic=not place.sliding),
            *parts.scalar(hidden, 1 if place.first else inputs + 1),
            *parts.norm(hidden, count=inputs + 1),
        )
        return Mixer(caches, weights)

    def attention_weights(self, c: Config, heads: Heads) -> Weights:
        """With an output gate, sinks, and the scales of clipped queries and relative positions."""
        hidden, wide = self.hidden(c), heads.query * heads.key_dim
        return (
            *super().attention_weights(c, heads),
            Weight(w.QUERY, wide + heads.query, hidden),
            Weight(w.NORM, wide + heads.query * c.whole("d_rel")),
        )

    def kernels(self, c: Config, heads: Heads, *, dynamic: bool) -> Weights:
        """Four kernels; those of keys and values follow the input where ``dynamic``."""
        kernel, hidden = c.whole("conv_kernel_size"), self.hidden(c)
        found: Weights = (Weight(w.STATE, 2 * heads.kv * heads.key_dim + 2 * hidden, kernel),)
        return (*found, Weight(w.STATE, 2 * heads.kv * kernel, hidden)) if dynamic else found

    def block_norms(self, c: Config) -> Weights:
        """Their number differs by kind: they are with the mixers."""
        return ()

    def network(self, c: Config) -> Weights:
        """Routed experts."""
        routed, drawn = c.whole("n_routed_experts"), c.whole("num_experts_per_tok")
        return parts.experts(self.hidden(c), c.whole("moe_intermediate_size"), routed, drawn)

    def ending(self, c: Config) -> Weights:
        """One more pick before the final norm."""
        return parts.scalar(self.hidden(c)) + super().ending(c)

    def head(self, c: Config) -> Weights:
        """Rows for the tokens there are."""
        return parts.linear(w.HEAD, self.hidden(c), c.whole("unpadded_vocab_size"))


class Inkling2Loop(Inkling2):
    """Some blocks run ``loop_num_passes`` times, with caches for each pass.

    models/inkling2_loop/configuration_inkling2_loop.py and modeling_inkling2_loop.py.
    """

    def describe(self, c: Config, options: Options = NO_OPTIONS) -> Description:
        """With the published ``loop_config`` laid over the class's own keys."""
        if c.has("loop_config"):
            own = c.section("loop_config")
            said = {key: own.whole(name, c.whole(key)) for name, key in LOOP_KEYS.items()}
            c = c.with_values(**said)
        return super().describe(c, options)

    def passes(self, c: Config, count: int) -> list[int]:
        """The number of passes in the blocks of the loop."""
        (start, end), passes = self.loop(c), max(1, c.layers("loop_num_passes"))
        return [passes if start <= place < end else 0 for place in range(count)]

    def loop(self, c: Config) -> tuple[int, int]:
        """Where the loop starts and ends, which may be behind the last block."""
        start, end = c.whole("loop_layer_index_start"), c.whole("loop_layer_index_end")
        if end < start:
            raise BadFile(f"The config's loop ends at block {end} and starts at {start}.")
        return start, end

    def block(self, c: Config, place: Place) -> Mixer:
        """In the loop: caches for each pass, and gates for messages to queries, keys, values and
        network.
        """
        caches, weights = super().block(c, place)
        if not place.passes:
            return Mixer(caches, weights)
        hidden, rank = self.hidden(c), c.whole("loop_gate_rank")
        gates = (Weight(w.SCALAR, rank, 2 * hidden, 4), Weight(w.SCALAR, hidden, rank, 8))
        return Mixer(caches * place.passes, weights + gates)

    def ending(self, c: Config) -> Weights:
        """Four picks of messages for each block of the loop."""
        start, end = self.loop(c)
        return parts.scalar(self.hidden(c), 4 * (end - start)) + super().ending(c)
