"""Bytes that one sequence keeps, by ``cache_implementation``.

    dynamic     each token as it comes; a window's tensor is a view of the whole prompt until the
                first token is generated
    static      the whole length from the start, a window's at most; a counter a layer
    quantised   all but the recent tokens in groups with a scale and a zero point; fp8 all of them
    offloaded   on the card the layer at work and the next; windows and states stay there

transformers 5.24.0, cache_utils.py and generation/utils.py (_prepare_cache_for_generation).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Final

from kvplan.core.curve import Curve
from kvplan.core.errors import BadValue
from kvplan.core.formats import Format
from kvplan.core.latent_windows import SlidingLatentAttention
from kvplan.core.layers import INT64_BYTES, FullAttention, Layer, SlidingWindow
from kvplan.core.units import ceil_div, round_up

SCALE_BYTES: Final = 4  # the fp8 backend's, one for the keys and one for the values of a layer
QUANTO_BITS: Final = (2, 4)
HQQ_BITS: Final = (1, 2, 3, 4, 8)


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceCache(ABC):
    """What one sequence keeps on a rank; ``curve`` has the layers and the type they are kept in."""

    curve: Curve

    name: ClassVar[str]

    @abstractmethod
    def kept(self, tokens: int) -> int:
        """Bytes on the card between steps, ``tokens`` of context in, the most by any prompt."""

    def after_prefill(self, prompt: int) -> int:
        """Bytes on the card right after a prompt, until a token is generated."""
        return self.kept(prompt)

    def working(self, tokens: int) -> int:
        """Bytes more that a step needs for a while, to read the cache."""
        return 0

    def host(self, tokens: int) -> int:
        """Bytes in host memory."""
        return 0

    def read(self, tokens: int) -> int:
        """Bytes that a step reads."""
        return self.kept(tokens)

    def peak(self, prompt: int, tokens: int) -> int:
        """The most bytes on the way from a prompt to ``tokens`` of context."""
        return max(self.after_prefill(prompt), self.kept(tokens))


class DynamicCache(SequenceCache):
    """Grows with each token."""

    __slots__ = ()
    name: ClassVar[str] = "dynamic"

    def kept(self, tokens: int) -> int:
        """The tensors of so many tokens."""
        return self.curve.bytes(tokens)

    def after_prefill(self, prompt: int) -> int:
        """A windowed layer still holds the whole prompt (DynamicSlidingWindowLayer.update)."""
        fmt = self.curve.fmt
        return sum(whole_bytes(layer, prompt, fmt) * count for layer, count in self.curve.layers)


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticCache(SequenceCache):
    """Reserves ``generate``'s whole length, or ``max_cache_len`` if that is more."""

    max_cache_len: int = 0

    name: ClassVar[str] = "static"

    def kept(self, tokens: int) -> int:
        """Room for ``max_length − 1`` tokens: the last one is never fed back."""
        length = max(tokens - 1, self.max_cache_len)
        fmt = self.curve.fmt
        return sum(reserved(layer, length, fmt) * count for layer, count in self.curve.layers)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantisedCache(SequenceCache):
    """Groups of ``group`` elements with a scale and a zero point in the model's type.

    A prompt is quantised at once; what is generated waits whole until ``residual`` tokens are
    there, and then all is quantised again (QuantizedLayer.update). ``groups_a_row``: quanto packs
    so many groups into the bytes of one and fills up the last (optimum-quanto 0.2.7,
    tensor/packed.py, pack_weights); hqq has no such rest.
    """

    bits: int
    group: int
    residual: int
    groups_a_row: int = 1

    name: ClassVar[str] = "quantized"

    def kept(self, tokens: int) -> int:
        """The most by any prompt: one token short of a residual is whole."""
        return self.by_prompt(tokens - min(tokens, self.residual - 1), tokens)

    def by_prompt(self, prompt: int, tokens: int) -> int:
        """Exactly, for a prompt of so many tokens."""
        whole = (tokens - prompt) % self.residual if prompt else 0
        return self.packed(tokens - whole) + self.curve.bytes(whole)

    def after_prefill(self, prompt: int) -> int:
        """All of it is quantised."""
        return self.packed(prompt)

    def packed(self, tokens: int) -> int:
        """Bytes of so many quantised tokens."""
        return sum(
            (self._tensor(tokens, layer.kv_heads, layer.key_dim)
             + self._tensor(tokens, layer.kv_heads, layer.value_dim)) * count
            for layer, count in self.curve.layers
            if isinstance(layer, FullAttention)
        )  # fmt: skip

    def _tensor(self, tokens: int, heads: int, dim: int) -> int:
        elements = tokens * heads * dim
        element_bytes = self.curve.fmt.keys(1, 1, 1).raw
        groups = ceil_div(elements, self.group)
        filled = (round_up(groups, self.groups_a_row) - groups) * self.group
        return ceil_div((elements + filled) * self.bits, 8) + groups * 2 * element_bytes

    def working(self, tokens: int) -> int:
        """One layer's keys and values read back, and joined with the new ones."""
        return 2 * max(_each_layer(self.curve, tokens), default=0)


class Fp8Cache(SequenceCache):
    """Every token in fp8, a float32 scale for the keys and one for the values of each layer."""

    __slots__ = ()
    name: ClassVar[str] = "quantized"

    def kept(self, tokens: int) -> int:
        """One byte an element and the scales."""
        return sum(
            (tokens * layer.kv_heads * (layer.key_dim + layer.value_dim) + 2 * SCALE_BYTES) * count
            for layer, count in self.curve.layers
            if isinstance(layer, FullAttention)
        )

    def working(self, tokens: int) -> int:
        """One layer's keys and values read back, and joined with the new ones."""
        return 2 * max(_each_layer(self.curve, tokens), default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class OffloadedCache(SequenceCache):
    """Another cache whose layers of full length are in host memory, two at a time on the card.

    Windows and states stay on the card (offload_only_non_sliding).
    """

    inner: SequenceCache
    static: bool

    name: ClassVar[str] = "offloaded"

    def kept(self, tokens: int) -> int:
        """The layer at work and the one that is fetched, and what is never moved."""
        moved = self._moved(tokens)
        resident = self.inner.kept(tokens) - sum(size * count for size, count in moved)
        return resident + sum(sorted(_repeat(moved))[-2:])

    def after_prefill(self, prompt: int) -> int:
        """The same, with the whole prompt in the windows."""
        moved = sum(size * count for size, count in self._moved(prompt))
        return self.inner.after_prefill(prompt) - moved + self.kept(prompt) - self._resident(prompt)

    def host(self, tokens: int) -> int:
        """All layers of full length."""
        return sum(size * count for size, count in self._moved(tokens))

    def read(self, tokens: int) -> int:
        """Everything: what is in host memory crosses the bus each step."""
        return self.inner.read(tokens)

    def _resident(self, tokens: int) -> int:
        return self.inner.kept(tokens) - self.host(tokens)

    def _moved(self, tokens: int) -> list[tuple[int, int]]:
        fmt, length = self.curve.fmt, max(0, tokens - 1) if self.static else tokens
        counter = INT64_BYTES if self.static else 0
        return [
            (layer.stored(length, fmt).total + counter, count)
            for layer, count in self.curve.layers
            if layer.window is None and layer.per_token(fmt)
        ]


def _repeat(sizes: list[tuple[int, int]]) -> list[int]:
    """At most two of each size."""
    return [size for size, count in sizes for _ in range(min(2, count))]


def _each_layer(curve: Curve, tokens: int) -> list[int]:
    return [layer.stored(tokens, curve.fmt).total for layer, _ in curve.layers]


def whole_bytes(layer: Layer, tokens: int, fmt: Format) -> int:
    """A layer's bytes with every token in them, its window set aside."""
    if isinstance(layer, SlidingWindow):
        heads = layer.kv_heads * layer.copies
        keys = fmt.keys(tokens, heads, layer.key_dim)
        return (keys + fmt.values(tokens, heads, layer.value_dim)).total
    if isinstance(layer, SlidingLatentAttention):
        return fmt.keys(tokens, 1, layer.rank + layer.rope_dim).total
    return layer.stored(tokens, fmt).total


def reserved(layer: Layer, length: int, fmt: Format) -> int:
    """A layer's static tensors: the length, or its whole window; and a 64-bit counter."""
    if not layer.stored(1, fmt).total:
        return 0
    if not layer.heads:
        return layer.stored(length, fmt).total
    tokens = length if layer.window is None else min(length, layer.window)
    return whole_bytes(layer, tokens, fmt) + INT64_BYTES


def quantised(curve: Curve, backend: str, bits: int, group: int, residual: int) -> SequenceCache:
    """The quantised cache of a backend.

    Raises:
        BadValue: bits that the backend does not have, or layers that are not full attention.
    """
    others = {layer.kind for layer, _ in curve.layers} - {"full_attention"}
    if others:
        kinds = ", ".join(sorted(kind.replace("_", " ") for kind in others))
        raise BadValue(
            f"transformers quantises only full attention; this model has {kinds} as well.",
            "Choose --cache-implementation dynamic, static or offloaded.",
        )
    if backend == "fp8":
        return Fp8Cache(curve=curve)
    known = QUANTO_BITS if backend == "quanto" else HQQ_BITS
    if bits not in known:
        listed = ", ".join(map(str, known))
        raise BadValue(f"The backend {backend} has no {bits} bits: it has {listed}.")
    rows = 8 // bits if backend == "quanto" else 1
    return QuantisedCache(curve=curve, bits=bits, group=group, residual=residual, groups_a_row=rows)
