"""Bytes that a cache of the lab holds between steps, predicted from the model's layers.

    full         every token; a window's tensor is a view that keeps one token more
    static       the whole length from the start
    paged        whole blocks, the null block among them
    sliding      the first tokens and the last
    quantised    keys by channel, values by token, the last tokens whole
    offloaded    every token, elsewhere
    heavy        a fixed number of tokens and what each was attended to
    snapped      so many tokens of the prompt, every later one

A prompt is read at once, what follows token by token. Layers with a window of their own keep it
whatever the cache: what is done to the others is told here. All is of one sequence.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from kvplan.core.curve import Curve
from kvplan.core.errors import BadValue
from kvplan.core.formats import Format, Kivi
from kvplan.core.layers import INT64_BYTES, FullAttention, Layer, SlidingWindow
from kvplan.core.states import RecurrentState
from kvplan.core.units import ceil_div
from kvplan.engines.transformers.caches import Fp8Cache, SequenceCache, reserved, whole_bytes

SCORE_BYTES = 4  # float32
HALF_BYTES = 2  # a state that follows the model's type, as core.states has it


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """A cache's bytes; ``curve`` has the layers and the type that the model computes in.

    ``by_head``: it is made of keys and values of heads, and holds no other kind of layer.
    """

    curve: Curve

    by_head: ClassVar[bool] = True

    def num_bytes(self, prompt: int, tokens: int) -> int:
        """Bytes between steps, ``tokens`` in the cache, the first ``prompt`` of them at once.

        Raises:
            BadValue: a kind of layer that this cache does not hold.
        """
        return sum(self._of(layer, prompt, tokens) * count for layer, count in self.curve.layers)

    def _of(self, layer: Layer, prompt: int, tokens: int) -> int:
        if isinstance(layer, FullAttention) and layer.window is None:
            return self.layer_bytes(layer, prompt, tokens)
        if (
            self.by_head
            and not isinstance(layer, FullAttention)
            and layer.stored(1, self.curve.fmt).total
        ):
            kind = layer.kind.replace("_", " ")
            raise BadValue(f"These caches hold keys and values of heads; the model has {kind}.")
        return self.window_bytes(layer, prompt, tokens)

    def layer_bytes(self, layer: FullAttention, prompt: int, tokens: int) -> int:
        """Bytes of a layer that looks back over everything."""
        return layer.stored(tokens, self.curve.fmt).total

    def window_bytes(self, layer: Layer, prompt: int, tokens: int) -> int:
        """Bytes of any other layer."""
        return layer.stored(tokens, self.curve.fmt).total

    def rows(self, layer: FullAttention, tokens: int) -> int:
        """Bytes of the keys and values of so many tokens of a layer, as the model computes them."""
        return whole_bytes(layer, tokens, self.curve.fmt)


@dataclass(frozen=True, slots=True, kw_only=True)
class Nothing(Layout):
    """No cache."""

    def num_bytes(self, prompt: int, tokens: int) -> int:
        """None."""
        return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Full(Layout):
    """transformers' dynamic cache, what its tensors keep alive."""

    by_head: ClassVar[bool] = False

    def window_bytes(self, layer: Layer, prompt: int, tokens: int) -> int:
        """The step's tokens after at most ``size − 1``, as a view of them all is kept; a counter.

        transformers 5.24.0, cache_utils.py, DynamicSlidingWindowLayer.update: with a window of 4,
        a prompt of 9 keeps 9 alive until the next token, and then 3 + 1.
        """
        if not isinstance(layer, SlidingWindow):
            return layer.stored(tokens, self.curve.fmt).total
        step = tokens if tokens == prompt else 1
        kept = min(tokens - step, layer.size - 1) + step
        return whole_bytes(layer, kept, self.curve.fmt) + INT64_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Static(Layout):
    """transformers' static cache of ``length`` tokens."""

    length: int

    def num_bytes(self, prompt: int, tokens: int) -> int:
        """The same whatever is in it."""
        fmt = self.curve.fmt
        return sum(reserved(layer, self.length, fmt) * count for layer, count in self.curve.layers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Paged(Layout):
    """A pool of ``num_blocks`` blocks of ``block_size`` tokens, the null block among them.

    A block has a page of every layer, also of one with a window, which masks what it may not see.
    """

    num_blocks: int
    block_size: int

    def num_bytes(self, prompt: int, tokens: int) -> int:
        """The pool's, whatever is in it."""
        Layout.num_bytes(self, prompt, tokens)  # refuses what pages do not hold
        return self.num_blocks * self.block_bytes

    @property
    def block_bytes(self) -> int:
        """Bytes of a block: its tokens in every layer."""
        fmt = self.curve.fmt
        return sum(
            whole_bytes(layer, self.block_size, fmt) * count for layer, count in self.curve.layers
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sliding(Layout):
    """The first ``sinks`` tokens and the last ``recent``."""

    sinks: int
    recent: int

    def layer_bytes(self, layer: FullAttention, prompt: int, tokens: int) -> int:
        """Both parts."""
        return self.rows(layer, min(tokens, self.sinks + self.recent))


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantised(Layout):
    """KIVI's layout; ``keys_per_token`` packs the keys as the values are packed."""

    fmt: Kivi
    keys_per_token: bool = False

    def layer_bytes(self, layer: FullAttention, prompt: int, tokens: int) -> int:
        """Packed elements, their scales and zero points, and the tokens that are whole."""
        keys = self.fmt.values if self.keys_per_token else self.fmt.keys
        packed = keys(tokens, layer.kv_heads, layer.key_dim)
        packed += self.fmt.values(tokens, layer.kv_heads, layer.value_dim)
        return packed.total


@dataclass(frozen=True, slots=True, kw_only=True)
class Library(Layout):
    """A quantised cache of transformers."""

    cache: SequenceCache

    def num_bytes(self, prompt: int, tokens: int) -> int:
        """As ``kvplan fit --engine transformers`` counts it."""
        by_prompt = getattr(self.cache, "by_prompt", None)
        return int(by_prompt(prompt, tokens) if by_prompt else self.cache.kept(tokens))


@dataclass(frozen=True, slots=True, kw_only=True)
class Offloaded(Layout):
    """Every token of the layers without a window, in host memory or on disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeavyHitters(Layout):
    """``budget`` tokens of each head, each with the attention that it has had so far."""

    budget: int

    def layer_bytes(self, layer: FullAttention, prompt: int, tokens: int) -> int:
        """Keys, values and a float32 a head and token."""
        kept = min(tokens, self.budget)
        return self.rows(layer, kept) + kept * layer.kv_heads * SCORE_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapped(Layout):
    """``budget`` tokens of each head of the prompt, and all that come later."""

    budget: int

    def layer_bytes(self, layer: FullAttention, prompt: int, tokens: int) -> int:
        """What is left of the prompt, and the rest."""
        return self.rows(layer, min(prompt, self.budget) + tokens - prompt)


def as_computed(curve: Curve) -> Curve:
    """The curve with its states in the type that the model computes in, where no type is fixed.

    ``size`` counts them in 16 bits, as engines serve; the lab may compute in 32.
    """
    element = curve.fmt.keys(1, 1, 1).raw
    return Curve(tuple((_in(layer, element), count) for layer, count in curve.layers), curve.fmt)


def _in(layer: Layer, element: int) -> Layer:
    if not isinstance(layer, RecurrentState):
        return layer
    tensors = tuple(
        replace(one, element_bytes=element) if one.element_bytes == HALF_BYTES else one
        for one in layer.tensors
    )
    return replace(layer, tensors=tensors)


def kivi(bits: int, *, group: int, residual: int, whole: Format) -> Kivi:
    """KIVI's format of so many bits over a model that computes in the type ``whole``."""
    return Kivi(
        f"int{bits}",
        f"{bits}-bit integers: keys per channel, values per token, {residual} recent tokens whole",
        bits,
        group,
        residual,
        whole_bytes=ceil_div(whole.keys(1, 1, 8).raw, 8),
    )


def fp8(curve: Curve) -> Library:
    """An fp8 cache of transformers."""
    return Library(curve=curve, cache=Fp8Cache(curve=curve))
