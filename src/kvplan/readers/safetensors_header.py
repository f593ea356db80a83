"""The header of a safetensors file: names, types and shapes, never the tensors.

    8 bytes: length of the header, little endian
    JSON: {"name": {"dtype", "shape", "data_offsets": [begin, end]}, …, "__metadata__": {…}}
    the data, all of it described, no two tensors over the same bytes

Types and rules: safetensors 0.8, safetensors/src/tensor.rs.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any, NamedTuple, TypeGuard

from kvplan.core.errors import BadFile
from kvplan.readers.json_text import parse_object, shown
from kvplan.readers.ranges import Prefix, RangeReader

MAX_JSON_BYTES = 16 << 20
MAX_TENSORS = 1 << 17
MAX_DIMENSIONS = 16
MAX_ELEMENTS = 1 << 48

BITS: dict[str, int] = {
    "BOOL": 8, "U8": 8, "I8": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32,
    "F32": 32, "I64": 64, "U64": 64, "F64": 64, "C64": 64,
    "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8,
    "F6_E2M3": 6, "F6_E3M2": 6, "F4": 4,
}  # fmt: skip


class Stored(NamedTuple):
    """One tensor as a file holds it."""

    dtype: str
    elements: int
    num_bytes: int


def read_safetensors_header(source: RangeReader) -> dict[str, Stored]:
    """The tensors of one file by name.

    Raises:
        BadFile: not safetensors, cut short, or a header that describes other data than there is.
    """
    prefix = Prefix(source)
    prefix.upto(8)
    length = int.from_bytes(prefix.data[:8], "little")
    if length > MAX_JSON_BYTES:
        raise BadFile(
            f"{source.name} is no safetensors file, or a damaged one: it claims a header of "
            f"{length:,} bytes, and at most {MAX_JSON_BYTES >> 20} MiB are read."
        )
    prefix.upto(8 + length)
    raw = parse_tensor_json(
        bytes(memoryview(prefix.data)[8 : 8 + length]), f"The header of {source.name}"
    )
    raw.pop("__metadata__", None)
    found, spans = {}, []
    for name, entry in raw.items():
        stored, begin, end = _entry(source.name, name, entry)
        found[name] = stored
        spans.append((begin, end))
    _check_data(source, spans, source.size - 8 - length)
    return found


def parse_tensor_json(data: bytes, what: str) -> dict[str, Any]:
    """The object of a header or an index, of no more parts than tensors can have.

    Raises:
        BadFile: as ``parse_object``, or more brackets and commas than ``MAX_TENSORS`` need.
    """
    parts = data.count(b"{") + data.count(b"[") + data.count(b",")
    if parts > 16 * MAX_TENSORS or data.count(b"{") + data.count(b"[") > 4 * MAX_TENSORS:
        raise BadFile(f"{what} describes more than {MAX_TENSORS:,} tensors.")
    return parse_object(data, what, MAX_JSON_BYTES)


def _entry(file: str, name: str, entry: object) -> tuple[Stored, int, int]:
    """One tensor, its bytes held against its shape, and where they are."""
    if not isinstance(entry, Mapping):
        raise BadFile(f"The tensor {name[:80]!r} of {file} is described by no object.")
    dtype, shape, offsets = (entry.get(key) for key in ("dtype", "shape", "data_offsets"))
    bits = BITS.get(dtype) if isinstance(dtype, str) else None
    if bits is None or not isinstance(dtype, str):
        raise BadFile(f"The tensor {name[:80]!r} of {file} has the unknown type {shown(dtype)}.")
    if not _is_sizes(shape, MAX_DIMENSIONS) or (elements := prod(shape)) > MAX_ELEMENTS:
        raise BadFile(f"The tensor {name[:80]!r} of {file} has the shape {shown(shape)}.")
    if not _is_sizes(offsets, 2) or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise BadFile(f"The tensor {name[:80]!r} of {file} lies at {shown(offsets)}.")
    begin, end = offsets
    if elements * bits != 8 * (end - begin):
        raise BadFile(
            f"The tensor {name[:80]!r} of {file} has {end - begin:,} bytes of data, and its shape "
            f"{shown(shape)} of {dtype} needs {elements * bits / 8:,.0f}."
        )
    return Stored(dtype, elements, end - begin), begin, end


def _is_sizes(found: object, most: int) -> TypeGuard[list[int]]:
    """Whether a value is a short list of numbers that can be sizes."""
    return (
        isinstance(found, list)
        and len(found) <= most
        and all(item.__class__ is int and 0 <= item <= 1 << 62 for item in found)
    )


def _check_data(source: RangeReader, spans: list[tuple[int, int]], size: int) -> None:
    """Tensors follow one another and fill the data."""
    place = 0
    for begin, end in sorted(spans):
        if begin != place:
            raise BadFile(f"The tensors of {source.name} overlap or leave a gap at byte {place:,}.")
        place = end
    if place != size:
        raise BadFile(
            f"{source.name} is cut short or too long: its tensors need {place:,} bytes of data "
            f"and it has {size:,}."
        )
