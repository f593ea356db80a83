"""The header of a GGUF file: metadata and tensor infos, never the tensors.

    magic  version  tensor count  key count
    key count × (key, type, value)             arrays: (element type, count, elements)
    tensor count × (name, dimensions, shape, type, offset)
    padding to the alignment, then the data

Everything in it is untrusted. Counts are held against what is left of the file before anything is
made of them, strings and arrays that no geometry needs (a vocabulary) are stepped over and leave
their length. Format: docs/gguf.md of ggml; limits where llama.cpp (ggml/src/gguf.cpp) has them.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

from kvplan.core.errors import BadFile
from kvplan.core.units import round_up
from kvplan.readers.gguf.types import REMOVED, TYPES, GgmlType
from kvplan.readers.ranges import Prefix, RangeReader

MAGIC = b"GGUF"
MAX_KEYS = 4096
MAX_TENSORS = 1 << 15
MAX_NAME_BYTES = 1024
MAX_TEXT_BYTES = 4096  # a longer text is stepped over
MAX_ARRAY = 8192  # a longer array is stepped over
MAX_KEPT = 1 << 18  # elements of all arrays that are kept
MAX_STEPS = 1 << 21  # texts that are stepped over; an inner array takes as long as 32 of them
MAX_NESTING = 4
MAX_DIMENSIONS = 4
MAX_ELEMENTS = 1 << 48

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q",
            12: "d"}  # fmt: skip
_TEXT, _ARRAY = 8, 9


class Skipped(NamedTuple):
    """A value that was stepped over, and how many elements or bytes it has."""

    length: int


Scalar = int | float | bool | str
Value = Scalar | tuple[Scalar, ...] | Skipped


class Tensor(NamedTuple):
    """One tensor info. ``shape`` is in ggml's order: the row's length first."""

    name: str
    shape: tuple[int, ...]
    type: GgmlType
    offset: int

    @property
    def elements(self) -> int:
        """Elements of the tensor."""
        return prod(self.shape)

    @property
    def num_bytes(self) -> int:
        """Bytes of its data, padding after it not counted."""
        return self.elements // self.type.elements * self.type.bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What a GGUF file says of itself."""

    file: str
    version: int
    big_endian: bool
    metadata: Mapping[str, Value]
    tensors: tuple[Tensor, ...]
    data_offset: int


class _Cursor:
    """A place in the header, and what may still be made of it."""

    def __init__(self, source: RangeReader) -> None:
        self.file = source.name
        self.size = source.size
        self.prefix = Prefix(source)
        self.place = 0
        self.kept = 0
        self.steps = 0
        self.order = "<"

    def take(self, length: int) -> int:
        """Step over ``length`` bytes; where they begin."""
        begin = self.place
        self.place = begin + length
        self.prefix.upto(self.place)
        return begin

    def numbers_of(self, codes: str) -> tuple[int, ...]:
        """The numbers of some struct codes."""
        layout = self.order + codes
        begin = self.take(struct.calcsize(layout))
        return struct.unpack_from(layout, self.prefix.data, begin)

    def number(self, code: str) -> int:
        """One number of a struct code."""
        return self.numbers_of(code)[0]

    def count(self, what: str, most: int, least_bytes: int) -> int:
        """A count, which what is left of the file must have room for."""
        found = self.number("Q")
        if found > most:
            wrapped = f" (as a signed number {found - (1 << 64)})" if found >> 63 else ""
            raise BadFile(
                f"{self.file} claims {found:,} {what}{wrapped}; at most {most:,} are read."
            )
        if found * least_bytes > self.size - self.place:
            raise BadFile(
                f"{self.file} is cut short or damaged: it claims {found:,} {what}, which need more "
                f"than the {self.size - self.place:,} bytes that are left."
            )
        return found

    def name(self, what: str) -> str:
        """A short text that must be there in full."""
        length = self.count(f"bytes in the name of a {what}", MAX_NAME_BYTES, 1)
        begin = self.take(length)
        try:
            return self.prefix.data[begin : begin + length].decode()
        except UnicodeDecodeError:
            raise BadFile(f"The name of a {what} of {self.file} is not UTF-8 text.") from None

    def text(self) -> str | Skipped:
        """A text value."""
        length = self.count("bytes in a text", self.size, 1)
        begin = self.take(length)
        if length > MAX_TEXT_BYTES:
            return Skipped(length)
        return self.prefix.data[begin : begin + length].decode(errors="replace")

    def value(self, kind: int, key: str) -> Value:
        """A value of a metadata type."""
        if kind in _SCALARS:
            return self.number(_SCALARS[kind])
        if kind == _TEXT:
            return self.text()
        if kind == _ARRAY:
            return self.array(key)
        raise BadFile(f"The key {key[:80]!r} of {self.file} has the unknown type {kind}.")

    def array(self, key: str, depth: int = 1) -> tuple[Scalar, ...] | Skipped:
        """An array: numbers are kept where they are few, all others leave their length."""
        kind = self.number("I")
        if kind in _SCALARS:
            return self.numbers(_SCALARS[kind])
        count = self.count("elements in an array", self.size, 8 if kind == _TEXT else 12)
        self.steps += count if kind == _TEXT else 32 * count
        if self.steps > MAX_STEPS:
            raise BadFile(
                f"{self.file} has more than {MAX_STEPS:,} texts in its metadata (at {key[:80]!r}), "
                "which is no vocabulary."
            )
        if kind == _TEXT:
            self.step_over_texts(count)
        elif kind == _ARRAY and depth < MAX_NESTING:
            for _ in range(count):
                self.array(key, depth + 1)
        else:
            what = f"deeper than {MAX_NESTING}" if kind == _ARRAY else f"of unknown type {kind}"
            raise BadFile(f"The key {key[:80]!r} of {self.file} is an array {what}.")
        return Skipped(count)

    def numbers(self, code: str) -> tuple[Scalar, ...] | Skipped:
        """An array of numbers."""
        size = struct.calcsize(self.order + code)
        count = self.count("elements in an array", self.size, size)
        begin = self.take(count * size)
        if count > MAX_ARRAY or self.kept + count > MAX_KEPT:
            return Skipped(count)
        self.kept += count
        return struct.unpack_from(f"{self.order}{count}{code}", self.prefix.data, begin)

    def step_over_texts(self, count: int) -> None:
        """Step over texts one by one: each begins with its length."""
        length_at = struct.Struct(self.order + "Q").unpack_from
        data, upto, place = self.prefix.data, self.prefix.upto, self.place
        held = len(data)
        for _ in range(count):
            if place + 8 > held:
                held = upto(place + 8)
            place += 8 + length_at(data, place)[0]
        upto(place)
        self.place = place


def read_header(source: RangeReader) -> Header:
    """The header of one GGUF file.

    Raises:
        BadFile: not GGUF, of a version that is not read, cut short, or with claims that no header
            can make.
    """
    at = _Cursor(source)
    version = _begin(at)
    num_tensors = at.count("tensors", MAX_TENSORS, 24)
    num_keys = at.count("metadata keys", MAX_KEYS, 13)
    metadata = _metadata(at, num_keys)
    tensors = [_tensor(at) for _ in range(num_tensors)]
    alignment = metadata.get("general.alignment", 32)
    if not isinstance(alignment, int) or alignment < 1 or alignment & (alignment - 1):
        raise BadFile(f"The general.alignment of {at.file} is {alignment}, not a power of two.")
    begin = round_up(at.place, alignment)
    _check_data(at, tensors, begin, alignment)
    return Header(
        file=at.file,
        version=version,
        big_endian=at.order == ">",
        metadata=metadata,
        tensors=tuple(tensors),
        data_offset=begin,
    )


def _begin(at: _Cursor) -> int:
    """Magic and version, which tells the byte order: a small number is one way round only."""
    begin = at.take(4)
    magic = bytes(at.prefix.data[begin : begin + 4])
    if magic != MAGIC:
        raise BadFile(f"{at.file} is not a GGUF file: it begins with {magic!r}.")
    version = at.number("I")
    if version and not version & 0xFFFF:
        at.order = ">"
        at.place -= 4
        version = at.number("I")
    if version not in (2, 3):
        hint = "Convert the model again with a current llama.cpp." if version == 1 else ""
        raise BadFile(f"{at.file} is GGUF version {version:,}; versions 2 and 3 are read.", hint)
    return version


def _metadata(at: _Cursor, count: int) -> dict[str, Value]:
    """The keys and their values."""
    found: dict[str, Value] = {}
    for _ in range(count):
        key = at.name("key")
        if key in found:
            raise BadFile(f"{at.file} has the key {key[:80]!r} twice.")
        found[key] = at.value(at.number("I"), key)
    return found


def _tensor(at: _Cursor) -> Tensor:
    """One tensor info, its shape checked."""
    name = at.name("tensor")
    dimensions = at.number("I")
    if not 1 <= dimensions <= MAX_DIMENSIONS:
        raise BadFile(f"The tensor {name[:80]!r} of {at.file} has {dimensions:,} dimensions.")
    *lengths, number, offset = at.numbers_of(f"{dimensions}QIQ")
    shape = tuple(lengths)
    kind = TYPES.get(number)
    if kind is None:
        known = f"{REMOVED[number]}, which ggml gave up" if number in REMOVED else "unknown"
        raise BadFile(f"The tensor {name[:80]!r} of {at.file} has the type {number} ({known}).")
    if max(shape) > MAX_ELEMENTS or not 0 < prod(shape) <= MAX_ELEMENTS:
        raise BadFile(f"The tensor {name[:80]!r} of {at.file} has the shape {shape}.")
    if shape[0] % kind.elements:
        raise BadFile(
            f"The tensor {name[:80]!r} of {at.file} has rows of {shape[0]:,} elements, which are "
            f"not whole blocks of {kind.name} ({kind.elements})."
        )
    return Tensor(name, shape, kind, offset)


def _check_data(at: _Cursor, tensors: list[Tensor], begin: int, alignment: int) -> None:
    """Names differ, data lies within the file, aligned, and no two tensors overlap."""
    end, names = 0, set()
    for tensor in sorted(tensors, key=lambda tensor: tensor.offset):
        if tensor.name in names:
            raise BadFile(f"{at.file} has the tensor {tensor.name[:80]!r} twice.")
        names.add(tensor.name)
        if tensor.offset < end or tensor.offset % alignment:
            raise BadFile(
                f"The data of the tensor {tensor.name[:80]!r} of {at.file} begins at "
                f"{tensor.offset:,}, inside another or not aligned to {alignment}."
            )
        end = tensor.offset + tensor.num_bytes
    if begin + end > at.size and tensors:
        raise BadFile(
            f"{at.file} is cut short: its tensors end at byte {begin + end:,} "
            f"and the file has {at.size:,}."
        )
