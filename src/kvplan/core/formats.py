"""Storage formats: what a row of cached numbers costs, its scales apart from its elements.

Four layouts cover every format that the engines store a cache in:

    Plain       each element alone                          f32 bf16 f16, fp8 and int8 (+ scales)
    Blocked     k elements share a block of fixed bytes     q8_0 q5_1 q5_0 q4_1 q4_0 iq4_nl mxfp4 …
    Grouped     groups along a row, a scale and a zero      int8 int4 int2 with -gN
    Kivi        keys grouped along tokens, per channel; values grouped along a token; the most
                recent tokens kept whole until a group of them is full

Everything is counted for one tensor of ``tokens`` rows of ``heads × dim`` elements; a cache holds
one such tensor for its keys and one for its values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from kvplan.core.errors import BadValue
from kvplan.core.units import ceil_div


class Stored(NamedTuple):
    """Bytes of elements and bytes of what is stored to read them back (scales, zero points)."""

    raw: int
    scales: int = 0

    @property
    def total(self) -> int:
        """Elements and scales together."""
        return self.raw + self.scales

    def __add__(self, other: object) -> Stored:
        if not isinstance(other, Stored):
            return NotImplemented
        return Stored(self.raw + other.raw, self.scales + other.scales)

    def times(self, count: int) -> Stored:
        """The same, ``count`` times."""
        return Stored(self.raw * count, self.scales * count)


NOTHING = Stored(0, 0)


@dataclass(frozen=True, slots=True)
class Format:
    """How a cache stores its elements. ``name`` is what ``--kv-dtype`` takes."""

    name: str
    note: str

    def keys(self, tokens: int, heads: int, dim: int) -> Stored:
        """Bytes of ``tokens`` keys of ``heads × dim`` elements of one sequence in one layer."""
        raise NotImplementedError

    def values(self, tokens: int, heads: int, dim: int) -> Stored:
        """Bytes of ``tokens`` values; the same as the keys unless the format tells them apart."""
        return self.keys(tokens, heads, dim)

    @property
    def linear(self) -> bool:
        """Whether a token costs the same wherever it stands."""
        return True

    @property
    def period(self) -> int:
        """Tokens after which the steps of the cost repeat (1 where there are none)."""
        return 1

    @property
    def bits_per_element(self) -> float:
        """Bits an element costs with its scales, for a long row."""
        stored = self.keys(1 << 20, 8, 128)
        return stored.total * 8 / (1 << 30)


@dataclass(frozen=True, slots=True)
class Plain(Format):
    """Elements of ``bits`` bits, and a scale a head of a token where the format has one.

    A scale a tensor is one number a layer, whatever is cached: it stands with the weights, and no
    sequence holds it.
    """

    bits: int
    scale_bytes_per_head: int = 0

    def keys(self, tokens: int, heads: int, dim: int) -> Stored:
        """``tokens × heads × dim`` elements, and their scales."""
        scales = tokens * heads * self.scale_bytes_per_head
        return Stored(ceil_div(tokens * heads * dim * self.bits, 8), scales)


@dataclass(frozen=True, slots=True)
class Blocked(Format):
    """``elements`` consecutive elements of a row share ``bytes_per_block``, scales included."""

    elements: int
    bytes_per_block: int
    scale_bytes: int

    def keys(self, tokens: int, heads: int, dim: int) -> Stored:
        """Whole blocks of a row of ``heads × dim`` elements.

        Raises:
            BadValue: the row is not a whole number of blocks; no engine stores such a cache.
        """
        row = heads * dim
        if row % self.elements:
            raise BadValue(
                f"{self.name} stores {self.elements} elements a block, and a row of "
                f"{heads} × {dim} = {row} elements is not a whole number of blocks.",
                "Choose a format without blocks (f16, bf16, fp8) for this model.",
            )
        blocks = tokens * row // self.elements
        return Stored(blocks * (self.bytes_per_block - self.scale_bytes), blocks * self.scale_bytes)


@dataclass(frozen=True, slots=True)
class Grouped(Format):
    """``bits`` an element; each ``group`` elements of a head's vector have a scale and a zero."""

    bits: int
    group: int
    scale_bytes: int = 2
    zero_bytes: int = 2

    def keys(self, tokens: int, heads: int, dim: int) -> Stored:
        """A head's vector is cut into groups; a short last one costs a whole scale."""
        groups = tokens * heads * ceil_div(dim, self.group)
        raw = tokens * heads * ceil_div(dim * self.bits, 8)
        return Stored(raw, groups * (self.scale_bytes + self.zero_bytes))


@dataclass(frozen=True, slots=True)
class Kivi(Format):
    """Keys per channel over groups of tokens, values per token; the last tokens as they came.

    Liu et al., KIVI (ICML 2024), section 3: keys wait in the residual until ``residual`` of them
    are there and are quantised together; of the values the last ``residual`` stay whole, in
    elements of ``whole_bytes``.
    """

    bits: int
    group: int
    residual: int
    scale_bytes: int = 2
    zero_bytes: int = 2
    whole_bytes: int = 2

    def keys(self, tokens: int, heads: int, dim: int) -> Stored:
        """Whole residuals of keys are quantised; ``tokens mod residual`` are kept whole."""
        whole = tokens % self.residual
        packed = tokens - whole
        raw = ceil_div(packed * heads * dim * self.bits, 8) + whole * heads * dim * self.whole_bytes
        groups = heads * dim * ceil_div(packed, self.group)
        return Stored(raw, groups * (self.scale_bytes + self.zero_bytes))

    def values(self, tokens: int, heads: int, dim: int) -> Stored:
        """All but the last ``residual`` values are quantised, each token by itself."""
        whole = min(tokens, self.residual)
        packed = tokens - whole
        raw = packed * heads * ceil_div(dim * self.bits, 8) + whole * heads * dim * self.whole_bytes
        groups = packed * heads * ceil_div(dim, self.group)
        return Stored(raw, groups * (self.scale_bytes + self.zero_bytes))

    @property
    def linear(self) -> bool:
        """The recent window costs more than the rest."""
        return False

    @property
    def period(self) -> int:
        """A residual of keys fills up, then is packed at once."""
        return self.residual


def _table(*formats: Format) -> dict[str, Format]:
    return {fmt.name: fmt for fmt in formats}


# Block sizes: ggml/src/ggml-common.h (llama.cpp b6900): block_q8_0 … block_iq4_nl, block_mxfp4.
# nvfp4: 16 E2M1 elements and an E4M3 scale, plus one float32 scale a tensor (CUDA 13 cuBLAS guide).
FORMATS: dict[str, Format] = _table(
    Plain("f32", "32-bit floats", 32),
    Plain("bf16", "16-bit floats", 16),
    Plain("f16", "16-bit floats", 16),
    Plain("fp8_e4m3", "8-bit floats; one scale for K and one for V in each layer, with the weights",
          8),
    Plain("fp8_e5m2", "8-bit floats, no scales", 8),
    Plain("fp8_per_token_head", "8-bit floats, a float32 scale a head and token", 8, 4),
    Plain("int8_per_token_head", "8-bit integers, a float32 scale a head and token", 8, 4),
    Grouped("int8", "8-bit integers, 16-bit scale and zero point each 64 elements", 8, 64),
    Grouped("int4", "4-bit integers, 16-bit scale and zero point each 64 elements", 4, 64),
    Grouped("int2", "2-bit integers, 16-bit scale and zero point each 64 elements", 2, 64),
    Grouped("int8_g32", "8-bit integers, 16-bit scale and zero point each 32 elements", 8, 32),
    Grouped("int4_g32", "4-bit integers, 16-bit scale and zero point each 32 elements", 4, 32),
    Grouped("int2_g32", "2-bit integers, 16-bit scale and zero point each 32 elements", 2, 32),
    Kivi("kivi4", "KIVI, 4 bits: keys per channel, values per token, 128 recent tokens whole",
         4, 32, 128),
    Kivi("kivi2", "KIVI, 2 bits: keys per channel, values per token, 128 recent tokens whole",
         2, 32, 128),
    Blocked("nvfp4", "4-bit floats, an 8-bit scale each 16 elements", 16, 9, 1),
    Blocked("mxfp4", "4-bit floats, an 8-bit exponent each 32 elements", 32, 17, 1),
    Blocked("q8_0", "8 bits, a 16-bit scale each 32 elements", 32, 34, 2),
    Blocked("q5_1", "5 bits, a 16-bit scale and minimum each 32 elements", 32, 24, 4),
    Blocked("q5_0", "5 bits, a 16-bit scale each 32 elements", 32, 22, 2),
    Blocked("q4_1", "4 bits, a 16-bit scale and minimum each 32 elements", 32, 20, 4),
    Blocked("q4_0", "4 bits, a 16-bit scale each 32 elements", 32, 18, 2),
    Blocked("iq4_nl", "4 bits from a table, a 16-bit scale each 32 elements", 32, 18, 2),
)  # fmt: skip

# Other spellings: torch's names, vLLM's and llama.cpp's flag values.
FORMAT_ALIASES = {
    "float32": "f32", "fp32": "f32", "bfloat16": "bf16", "float16": "f16", "fp16": "f16",
    "half": "f16", "auto": "bf16", "fp8": "fp8_e4m3", "fp8_e4m3fn": "fp8_e4m3",
    "float8_e4m3fn": "fp8_e4m3", "float8_e5m2": "fp8_e5m2", "fp8_inc": "fp8_e4m3",
    "kivi": "kivi2", "kivi-2": "kivi2", "kivi-4": "kivi4",
}  # fmt: skip


def parse_format(name: str) -> Format:
    """The format of a name, any spelling of it.

    Raises:
        BadValue: no such format; the message lists those there are.
    """
    name = str(name)[:80]
    key = name.strip().lower().replace("-", "_")
    found = FORMATS.get(FORMAT_ALIASES.get(key, key)) or FORMATS.get(
        FORMAT_ALIASES.get(key.replace("_", "-"), "")
    )
    if found is None:
        raise BadValue(f"{name[:64]!r} is not a cache format.", f"Known: {', '.join(FORMATS)}.")
    return found
