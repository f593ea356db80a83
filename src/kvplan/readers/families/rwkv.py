"""RWKV: the last hidden states of both halves of a block, and a state that decays.

RWKV 4 follows transformers 5.24.0 (models/rwkv/modeling_rwkv.py). RWKV 5 and 6 were published with
code of their own (RWKV/v5-Eagle-7B-HF, modeling_rwkv5.py; RWKV/v6-Finch-7B-HF, modeling_rwkv6.py).
"""

from __future__ import annotations

from kvplan.core import weights as w
from kvplan.core.layers import FLOAT32_BYTES
from kvplan.core.stack import Stack
from kvplan.core.states import RecurrentState, StateTensor
from kvplan.core.weights import Weight
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Decoder, Mixer, Weights
from kvplan.readers.families.mamba import MODEL_BYTES


class Rwkv(Decoder):
    """Time mixing and channel mixing, layer norms, one more norm before the first block."""

    norm = "layer"
    mixes = 3  # learned mixing vectors of the time mixing

    def mixers(self, c: Config) -> Stack[Mixer]:
        """The same time mixing in every block."""
        return Stack.uniform(Mixer((self.state(c),), self.time_mixing(c)), self.depth(c))

    def state(self, c: Config) -> RecurrentState:
        """Numerator, denominator and exponent in float32, a value a channel."""
        hidden, wide = self.hidden(c), self.wide(c)
        shifts = self.shifts(hidden)
        sums = [
            StateTensor(name=name, shape=(wide,), element_bytes=FLOAT32_BYTES)
            for name in ("numerator", "denominator", "exponent")
        ]
        return RecurrentState(tensors=(*shifts, *sums))

    @staticmethod
    def shifts(hidden: int) -> tuple[StateTensor, StateTensor]:
        """The last hidden state that each half of the block saw, whole on every rank."""
        first, second = (
            StateTensor(name=name, shape=(hidden,), element_bytes=MODEL_BYTES, split=None)
            for name in ("attention shift", "network shift")
        )
        return first, second

    def time_mixing(self, c: Config) -> Weights:
        """Key, value and receptance, the output, decay, bonus and mixing vectors."""
        hidden, wide = self.hidden(c), self.wide(c)
        return (
            Weight(w.STATE_IN, wide, hidden, 3),
            Weight(w.STATE_OUT, hidden, wide),
            Weight(w.STATE, wide, 1, 2),
            Weight(w.STATE, hidden, 1, self.mixes),
        )

    def network(self, c: Config) -> Weights:
        """Channel mixing: key and value around a square, a receptance, two mixing vectors."""
        hidden, inner = self.hidden(c), self.inner(c)
        return (
            *parts.mlp(hidden, inner, gated=False),
            Weight(w.MLP_IN, hidden, hidden),
            Weight(w.STATE, hidden, 1, 2),
        )

    def embeddings(self, c: Config) -> Weights:
        """The embedding and the norm before the first block."""
        return super().embeddings(c) + parts.norm(self.hidden(c), self.norm)

    def wide(self, c: Config) -> int:
        """Channels of the time mixing."""
        return c.whole("attention_hidden_size", self.hidden(c))

    def inner(self, c: Config) -> int:
        """Four times the width unless given."""
        return c.whole("intermediate_size", 4 * self.hidden(c))


class Rwkv5(Rwkv):
    """Eagle: a matrix a head for a state, a gate, and a norm over heads."""

    mixes = 4
    projections = 4  # key, value, receptance and gate

    def state(self, c: Config) -> RecurrentState:
        """A matrix of ``head_size × head_size`` a head, in float32."""
        size = self.head_size(c)
        shape = (max(1, self.wide(c) // size), size, size)
        matrix = StateTensor(name="wkv", shape=shape, element_bytes=FLOAT32_BYTES)
        return RecurrentState(tensors=(*self.shifts(self.hidden(c)), matrix))

    def time_mixing(self, c: Config) -> Weights:
        """With the gate, and the norm of the heads' outputs."""
        hidden, wide = self.hidden(c), self.wide(c)
        return (
            Weight(w.STATE_IN, wide, hidden, self.projections),
            Weight(w.STATE_OUT, hidden, wide),
            Weight(w.STATE, wide, 1, 2),
            Weight(w.STATE, hidden, 1, self.mixes),
            *parts.norm(hidden, "layer"),
        )

    def inner(self, c: Config) -> int:
        """Three and a half times the width, in whole groups of 32, unless given."""
        return c.whole("intermediate_size", self.hidden(c) * 7 // 2 // 32 * 32)

    def vocab(self, c: Config) -> int:
        """The world tokenizer's where absent."""
        return c.whole("vocab_size", 65536)

    def max_context(self, c: Config) -> int | None:
        """The length it was trained on."""
        return c.whole("context_length") if c.has("context_length") else None

    def head_size(self, c: Config) -> int:
        """Channels of a head."""
        return c.whole("head_size", 64)


class Rwkv6(Rwkv5):
    """Finch: mixing and decay that depend on the token, each through a low rank.

    The ranks are 64 and 128 in models 4,096 wide, half of that in all others.
    """

    mixes = 6

    def time_mixing(self, c: Config) -> Weights:
        """With the low-rank pairs of the five mixes and the decay."""
        hidden, wide = self.hidden(c), self.wide(c)
        rank = 64 if hidden == 4096 else 32
        return (
            *super().time_mixing(c),
            Weight(w.STATE, hidden, 5 * rank, 2),
            Weight(w.STATE, hidden + wide, 2 * rank),
        )
