"""GGUF files by hand: headers with whatever a test wants to say in them."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

from kvplan.core.model import Model
from kvplan.readers.families.base import NO_OPTIONS, Options
from kvplan.readers.gguf import read_gguf
from kvplan.readers.ranges import Memory

TensorRow = tuple[str, tuple[int, ...], int, int]  # name, shape, type, offset


def text(value: str, order: str = "<") -> bytes:
    data = value.encode()
    return struct.pack(order + "Q", len(data)) + data


def value(found: Any, order: str = "<") -> bytes:
    """A value with its type: whole numbers as int64, floats as float64."""
    if isinstance(found, bytes):  # type and value as they stand
        return found
    if isinstance(found, bool):
        return struct.pack(order + "IB", 7, found)
    if isinstance(found, int):
        return struct.pack(order + "Iq", 11, found)
    if isinstance(found, float):
        return struct.pack(order + "Id", 12, found)
    if isinstance(found, str):
        return struct.pack(order + "I", 8) + text(found, order)
    kinds = {bool: (7, "B"), int: (11, "q"), str: (8, "")}
    kind, code = kinds[type(found[0])] if found else (11, "q")
    head = struct.pack(order + "IIQ", 9, kind, len(found))
    if kind == 8:
        return head + b"".join(text(item, order) for item in found)
    return head + struct.pack(f"{order}{len(found)}{code}", *found)


def header(
    metadata: Mapping[str, Any] | Sequence[tuple[str, Any]],
    tensors: Sequence[TensorRow] = (),
    *,
    version: int = 3,
    order: str = "<",
    num_keys: int | None = None,
    num_tensors: int | None = None,
) -> bytes:
    rows = list(metadata.items()) if isinstance(metadata, Mapping) else list(metadata)
    counts = (
        len(tensors) if num_tensors is None else num_tensors,
        len(rows) if num_keys is None else num_keys,
    )
    data = b"GGUF" + struct.pack(order + "I", version)
    data += b"".join(struct.pack(order + "Q", count & (1 << 64) - 1) for count in counts)
    data += b"".join(text(key, order) + value(found, order) for key, found in rows)
    return data + b"".join(
        text(name, order)
        + struct.pack(f"{order}I{len(shape)}QIQ", len(shape), *shape, kind, offset)
        for name, shape, kind, offset in tensors
    )


def model(
    architecture: str, keys: Mapping[str, Any], options: Options = NO_OPTIONS, **others: Any
) -> Model:
    """The model of a file with these keys of its architecture and no tensors."""
    metadata = {"general.architecture": architecture, **others}
    metadata |= {f"{architecture}.{key}": found for key, found in keys.items()}
    return read_gguf(Memory(header(metadata), "test.gguf"), options=options)
