"""What torch's caching allocator adds to tensors by the sizes it hands out.

    up to 1 MiB      whole multiples of 512 bytes
    up to 10 MiB     out of segments of 20 MiB; a rest of 1 MiB or less is not split off
    above            segments of whole 2 MiB; a rest of 1 MiB or less is not split off

A rest that is not split off counts as allocated: Qwen3-4B's 36 pairs of gate and up of 95 MiB take
36 × 96. Larger rests stay free in their segment, reserved and of use to small tensors alone.

torch 2.13, c10/cuda/CUDACachingAllocator.cpp: get_allocation_size, should_split.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from kvplan.core import weights as w
from kvplan.core.units import MIB, ceil_div, round_up
from kvplan.core.weights import Storage, Weight

SMALLEST: Final = 512
SMALL: Final = MIB
LARGE: Final = 10 * MIB
SEGMENT: Final = 20 * MIB
STEP: Final = 2 * MIB

ATTENTION = frozenset({w.KEY, w.VALUE})


class Rounding(NamedTuple):
    """Bytes that count as allocated beyond the tensors, and bytes reserved but free."""

    allocated: int
    stranded: int


class Block(NamedTuple):
    """``copies`` tensors of ``num_bytes`` as the engine allocates them."""

    num_bytes: int
    copies: int


def rounding(blocks: Iterable[Block]) -> Rounding:
    """What the allocator adds to all of them."""
    allocated = stranded = 0
    for num_bytes, copies in blocks:
        one = one_rounding(num_bytes)
        allocated += one.allocated * copies
        stranded += one.stranded * copies
    return Rounding(allocated, stranded)


def one_rounding(num_bytes: int) -> Rounding:
    """What it adds to one tensor; of a segment that several share, an even part."""
    if num_bytes <= SMALL:
        return Rounding(round_up(num_bytes, SMALLEST) - num_bytes, 0)
    if num_bytes < LARGE:
        held = SEGMENT // num_bytes
        rest = (SEGMENT - held * num_bytes) // held
        return Rounding(rest, 0) if rest * held <= SMALL else Rounding(0, 0)
    rest = round_up(num_bytes, STEP) - num_bytes
    return Rounding(rest, 0) if rest <= SMALL else Rounding(0, rest)


def blocks_of(tensors: tuple[Weight, ...], storage: Storage) -> Iterator[Block]:
    """The tensors as vLLM allocates them: query, key and value as one, gate and up as one, all
    experts of a layer as one.

    vllm/model_executor/layers/linear.py (QKVParallelLinear, MergedColumnParallelLinear) and
    fused_moe/layer.py, 0.32.0.
    """
    place = 0
    while place < len(tensors):
        weight = tensors[place]
        length = _run(tensors, place)
        part = tensors[place : place + length]
        place += length
        count = _count(weight, tensors[place : place + 8])
        if count:
            yield Block(ceil_div(storage.num_bytes(part), count), count)


def _run(tensors: tuple[Weight, ...], place: int) -> int:
    """How many tensors from here are allocated as one: a query with its key and value."""
    first = tensors[place]
    length = 1
    while place + length < len(tensors):
        found = tensors[place + length]
        same = found.copies == first.copies and found.cols == first.cols
        if first.role not in (w.QUERY, w.KEY) or found.role not in ATTENTION or not same:
            break
        length += 1
    return length


def _count(weight: Weight, following: tuple[Weight, ...]) -> int:
    """How many blocks one line of the inventory becomes: one a layer."""
    if weight.role == w.MLP_IN:
        return next((f.copies for f in following if f.role == w.MLP_OUT), weight.copies)
    if weight.role in (w.EXPERT_IN, w.EXPERT_OUT):
        return next((f.copies for f in following if f.role == w.ROUTER), weight.copies)
    return weight.copies
