"""Quantised weights: what a matrix weighs in a scheme, scales and zero points included.

A scheme stores each element in some bits and shares a scale over a block of the matrix:

    per tensor        block = the whole matrix
    per channel       block = 1 × columns
    groups            block = 1 × group
    blocks            block = 128 × 128
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from kvplan.core import weights as w
from kvplan.core.units import ceil_div
from kvplan.core.weights import Weight

WHOLE = 0  # a block as long as the matrix

# Matrices that a linear layer multiplies by. The others (norms, biases, tables, scalars, the
# convolution and decay of a state) no scheme touches.
LINEAR_ROLES = frozenset({
    w.HEAD, w.QUERY, w.KEY, w.VALUE, w.OUTPUT, w.LATENT, w.INDEXER, w.MLP_IN, w.MLP_OUT,
    w.EXPERT_IN, w.EXPERT_OUT, w.ROUTER, w.STATE_IN, w.STATE_OUT, w.TOWER, w.PROJECTOR, w.ENCODER,
})  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheme:
    """How one matrix is stored.

    ``block_rows`` and ``block_cols`` share a scale of ``scale_bytes`` and, where the scheme is not
    symmetric, a zero point of ``zero_bits``; 0 is the whole length. ``per_tensor_bytes`` are global
    scales, ``per_col_bytes`` an index of each input (GPTQ's ``g_idx``).
    """

    name: str
    bits: int
    block_rows: int = 1
    block_cols: int = WHOLE
    scale_bytes: int = 0
    zero_bits: int = 0
    per_tensor_bytes: int = 0
    per_col_bytes: int = 0

    def num_bytes(self, rows: int, cols: int) -> int:
        """Bytes of a matrix of rows × cols."""
        scales = ceil_div(rows, self.block_rows or rows) * ceil_div(cols, self.block_cols or cols)
        return (
            ceil_div(rows * cols * self.bits, 8)
            + scales * self.scale_bytes
            + ceil_div(scales * self.zero_bits, 8)
            + self.per_tensor_bytes
            + cols * self.per_col_bytes
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantised:
    """Some roles in a scheme, the rest in 16 bits.

    ``shares`` says of each role which part of its matrices (by layers) is stored in which scheme;
    what is left over is unquantised.
    """

    method: str
    shares: Mapping[str, tuple[tuple[Scheme, float], ...]]
    bytes_each: int = 2
    told_by: str = "quantization_config"

    exact: ClassVar[bool] = False

    def weight_bytes(self, weight: Weight) -> int:
        """Bytes of all copies of one weight."""
        rows, cols, copies = weight.rows, weight.cols, weight.copies
        plain = rows * cols * copies * self.bytes_each
        if cols == 1:
            return plain
        found = float(plain)
        for scheme, share in self.shares.get(weight.role, ()):
            quantised = scheme.num_bytes(rows, cols) * copies
            found += share * (quantised - plain)
        return round(found)

    def num_bytes(self, tensors: tuple[Weight, ...]) -> int:
        """Bytes of all tensors."""
        return sum(map(self.weight_bytes, tensors))

    def source(self, parameters: int) -> str:
        """The method and what it leaves alone."""
        return f"{parameters:,} parameters, {self.method} by {self.told_by}"
