"""Integers of 2, 4 or 8 bits packed into bytes, and back; groups with a scale and a minimum.

    group of elements ─► minimum, scale = (maximum − minimum) / (2^bits − 1)
                      ─► (element − minimum) / scale, rounded, 8 / bits of them in a byte

The last dimension is packed: its length is a whole number of groups and of bytes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from kvplan.core.errors import BadValue


class Packed(NamedTuple):
    """Bytes, and the scale and minimum of each group, in float16."""

    data: Any
    scale: Any
    minimum: Any

    @property
    def num_bytes(self) -> int:
        """Of all three."""
        return sum(part.nbytes for part in self)

    def join(self, later: Packed, dim: int) -> Packed:
        """Both, one after the other along a dimension."""
        return Packed(*(torch.cat(pair, dim=dim) for pair in zip(self, later, strict=True)))


def quantise(rows: Any, bits: int, group: int) -> Packed:
    """Groups of ``group`` elements of the last dimension.

    Raises:
        BadValue: it is no whole number of groups.
    """
    if rows.shape[-1] % group:
        raise BadValue(
            f"Vectors of {rows.shape[-1]} elements are no whole groups of {group}.",
            "Choose --group 8 or 16, and a --residual that is a multiple of it.",
        )
    grouped = rows.float().unflatten(-1, (-1, group))
    low, high = grouped.amin(-1), grouped.amax(-1)
    # The stored scale is what reads back: rounding it to 16 bits first loses no more than that.
    scale = ((high - low) / (2**bits - 1)).to(torch.float16)
    minimum = low.to(torch.float16)
    divisor = scale.float().clamp(min=torch.finfo(torch.float16).tiny)
    levels = ((grouped - minimum.float()[..., None]) / divisor[..., None]).round()
    levels = levels.clamp(0, 2**bits - 1).to(torch.uint8).flatten(-2)
    return Packed(pack(levels, bits), scale, minimum)


def dequantise(packed: Packed, bits: int, group: int, dtype: Any) -> Any:
    """The elements, as near as they were stored."""
    levels = unpack(packed.data, bits).unflatten(-1, (-1, group)).float()
    rows = levels * packed.scale.float()[..., None] + packed.minimum.float()[..., None]
    return rows.flatten(-2).to(dtype)


def pack(levels: Any, bits: int) -> Any:
    """Bytes of 8 / bits elements each, the first in the lowest bits."""
    each = 8 // bits
    if each == 1:
        return levels
    parts = levels.unflatten(-1, (-1, each))
    packed = parts[..., 0]
    for place in range(1, each):
        packed = packed | parts[..., place] << place * bits
    return packed.contiguous()


def unpack(data: Any, bits: int) -> Any:
    """What ``pack`` packed."""
    each = 8 // bits
    if each == 1:
        return data
    parts = [data >> place * bits & 2**bits - 1 for place in range(each)]
    return torch.stack(parts, dim=-1).flatten(-2)
