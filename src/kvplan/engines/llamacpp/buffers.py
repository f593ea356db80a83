"""The model's bytes by where llama.cpp puts them: embedding, blocks, their experts, output.

The embedding stays in host memory (src/llama-model.cpp, dev_input, b11434). Where the output is
tied to it, the card that holds the output has a copy.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from kvplan.core import weights as w
from kvplan.core.model import Model
from kvplan.core.quantisation import Quantised
from kvplan.core.units import ceil_div
from kvplan.core.weights import ByBlock, Weights
from kvplan.engines.llamacpp.file_types import (
    AS_MXFP4,
    ESTIMATE_ERROR,
    FILE_TYPES,
    MIXTURE_ERROR,
    PLAIN,
    FileType,
    file_type,
    weight_bytes,
)
from kvplan.engines.llamacpp.placement import Slice
from kvplan.engines.weights import unknown_weights

# Encoders are another file (--mmproj), which goes beside the model.
OTHER_FILES: Final = frozenset({w.TOWER, w.PROJECTOR, w.CODEC})
INPUTS: Final = frozenset({w.EMBEDDING, w.POSITION})
EXPERTS: Final = frozenset({w.EXPERT_IN, w.EXPERT_OUT})
GIVEN_ERROR: Final = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffers:
    """Bytes of the file by place; ``error`` is relative, 0 where tensors were read."""

    parts: ByBlock
    tied: bool
    error: float
    source: str

    @property
    def total(self) -> int:
        """The file's tensors."""
        return self.parts.embedding + sum(self.parts.blocks) + self.parts.output

    def held(self, part: Slice, experts_on_host: range) -> int:
        """Bytes of a slice on a card."""
        first, end, output = part
        found = sum(self.parts.blocks[first:end])
        found -= sum(self.parts.experts[il] for il in experts_on_host if first <= il < end)
        return found + self.output * output

    @property
    def output(self) -> int:
        """The output layer, with its copy of a tied embedding."""
        return self.parts.output + self.parts.embedding * self.tied


def buffers_of(model: Model, file: str | None, total: int | None) -> Buffers:
    """Where the bytes of a model are.

    Args:
        model: its inventory; a GGUF's own bytes by block.
        file: a file type that is asked for.
        total: the whole file, where it is stated.

    Raises:
        BadValue: neither the source nor a flag knows the weights.
    """
    weights = model.weights
    depth = len(model.blocks)
    if weights is None:
        if total is None:
            raise unknown_weights(model)
        return _even(total, depth)
    if weights.by_block and not file:
        found = _of_file(weights, weights.by_block, depth)
    else:
        found = _estimated(weights, depth, _type_of(weights, file))
    return found if total is None else _scaled(found, total)


def _type_of(weights: Weights, file: str | None) -> tuple[FileType, float]:
    if file:
        return file_type(file)
    if _has_mxfp4_experts(weights):
        return AS_MXFP4, ESTIMATE_ERROR
    bits = 8 * weights.num_bytes / max(weights.parameters, 1)
    return FILE_TYPES["F32" if bits > 24 else "BF16"], 0.005


def _has_mxfp4_experts(weights: Weights) -> bool:
    """Whether the checkpoint itself keeps its experts in MXFP4, as gpt-oss does."""
    storage = weights.storage
    schemes = storage.shares.get(w.EXPERT_IN, ()) if isinstance(storage, Quantised) else ()
    return any(scheme.name == "mxfp4" for scheme, _ in schemes)


def _of_file(weights: Weights, parts: ByBlock, depth: int) -> Buffers:
    missing = (0,) * max(0, depth - len(parts.blocks))
    parts = parts._replace(blocks=parts.blocks + missing, experts=parts.experts + missing)
    return Buffers(
        parts=parts,
        tied=not weights.of_role(w.HEAD),
        error=0.0,
        source="the file's tensor infos",
    )


@lru_cache(maxsize=512)
def _counted(tensors: tuple[w.Weight, ...], kind: FileType) -> tuple[int, int, int, int]:
    """Bytes of the embedding, the output, the blocks and the experts among them."""
    tied = not any(weight.role == w.HEAD for weight in tensors)
    embedding = output = blocks = experts = 0
    for weight in tensors:
        if weight.role in OTHER_FILES:
            continue
        num_bytes = weight_bytes(kind, weight, tied=tied)
        if weight.role in INPUTS:
            embedding += num_bytes
        elif weight.role == w.HEAD:
            output += num_bytes
        else:
            blocks += num_bytes
            experts += num_bytes * (weight.role in EXPERTS)
    return embedding, output, blocks, experts


def _estimated(weights: Weights, depth: int, kind: tuple[FileType, float]) -> Buffers:
    found, error = kind
    embedding, output, blocks, experts = _counted(weights.tensors, found)
    if experts and found.most not in PLAIN:
        error = max(error, MIXTURE_ERROR)
    each, expert = ceil_div(blocks, max(depth, 1)), ceil_div(experts, max(depth, 1))
    return Buffers(
        parts=ByBlock(embedding, (each,) * depth, (expert,) * depth, output),
        tied=not weights.of_role(w.HEAD),
        error=error,
        source=f"{weights.parameters:,} parameters as {found.name}, blocks taken as equal",
    )


def _scaled(found: Buffers, total: int) -> Buffers:
    """The same shares of a stated total."""
    before = max(1, found.total)
    embedding, blocks, experts, output = found.parts
    parts = ByBlock(
        embedding * total // before,
        tuple(size * total // before for size in blocks),
        tuple(size * total // before for size in experts),
        output * total // before,
    )
    said = "flag, shared out as the tensors are"
    return Buffers(parts=parts, tied=found.tied, error=GIVEN_ERROR, source=said)


def _even(total: int, depth: int) -> Buffers:
    each = ceil_div(total, max(depth, 1))
    parts = ByBlock(0, (each,) * depth, (0,) * depth, 0)
    return Buffers(parts=parts, tied=False, error=GIVEN_ERROR, source="flag, split evenly")
