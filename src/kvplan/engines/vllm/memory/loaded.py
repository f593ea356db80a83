"""What "Model loading took" counts: a rank's weights, what is kept beside them, and the rounding.

Beside the parameters a model keeps the tables of its rotations, whole for every position it
declares, and of a quantised latent attention a 16-bit copy of the up-projections.
"""

from __future__ import annotations

from typing import NamedTuple

from kvplan.core import weights as w
from kvplan.core.latent import LatentAttention
from kvplan.core.layers import FullAttention
from kvplan.core.model import Model
from kvplan.core.quantisation import Quantised
from kvplan.core.traits import RotaryTable
from kvplan.core.units import MIB, format_bytes, round_up
from kvplan.core.weights import Weight, Weights
from kvplan.engines.vllm.memory.allocator import Block, blocks_of, rounding
from kvplan.engines.vllm.memory.machine import Machine
from kvplan.engines.weights import Given, Layout, RankWeights, rank_weights

ELEMENT_BYTES = 2
# vllm/model_executor/layers/rotary_embedding/mrope.py, MRotaryEmbedding: four times the positions.
SECTIONED_FACTOR = 4
# Seen on MI300X with two models (15.305 for 14.989 GiB, 51.79 for 51.47): hipBLASLt's workspaces.
ROCM_EXTRA = 323 * MIB


class Loaded(NamedTuple):
    """The figure that the log prints, its parts for a person, and what is stranded beside it."""

    num_bytes: int
    error_bytes: int
    source: str
    stranded: int


class OnRank(NamedTuple):
    """A rank's tensors and what they take once they are loaded."""

    rank: RankWeights
    loaded: Loaded


# By the model's weights (their identity: a storage need not be hashable), the cut, what is given
# and the machine; a sweep asks the same of one model thousands of times.
_KNOWN: dict[tuple[int, Layout, Given, Machine], tuple[Weights | None, OnRank | None]] = {}
_MOST_KNOWN = 1024


def on_rank(model: Model, layout: Layout, given: Given, machine: Machine) -> OnRank | None:
    """The fullest rank's tensors as loaded; None where nothing is known of the weights."""
    key = (id(model.weights), layout, given, machine)
    known = _KNOWN.get(key)
    if known is not None and known[0] is model.weights:
        return known[1]
    rank = rank_weights(model, layout, given)
    found = None if rank is None else OnRank(rank, loaded(model, rank, machine))
    if len(_KNOWN) >= _MOST_KNOWN:
        _KNOWN.clear()
    if model.weights is not None:
        _KNOWN[key] = (model.weights, found)
    return found


def loaded(model: Model, rank: RankWeights, machine: Machine) -> Loaded:
    """What one rank's model takes once it is loaded."""
    tables = rotary_bytes(model)
    padding = microscaled_padding(rank, machine)
    copies = latent_copies(rank)
    blocks = list(blocks_of(rank.tensors, rank.storage))
    blocks += [Block(num_bytes, 1) for num_bytes in (*tables, *copies)]
    rounded = rounding(blocks)
    extra = ROCM_EXTRA if machine.vendor == "AMD" else 0
    beside = sum(tables) + sum(copies) + extra + padding
    parts = [rank.source]
    if tables:
        parts.append(f"rotary tables {format_bytes(sum(tables))}")
    if copies:
        parts.append(f"16-bit latent projections {format_bytes(sum(copies))}")
    if padding:
        parts.append(f"experts padded for their kernel {format_bytes(padding)}")
    if rounded.allocated >= MIB:
        parts.append(f"allocator rounding {format_bytes(rounded.allocated)}")
    if extra:
        parts.append(f"ROCm workspaces {format_bytes(extra)}")
    return Loaded(
        num_bytes=rank.num_bytes + beside + rounded.allocated,
        error_bytes=rank.error_bytes + extra // 8 + padding // 8 + rounded.allocated // 4,
        source=" + ".join(parts),
        stranded=rounded.stranded,
    )


def rotary_bytes(model: Model) -> tuple[int, ...]:
    """Bytes of each rotary table; none for a model with learned positions."""
    weights = model.weights
    if weights is None or any(weight.role == w.POSITION for weight in weights.tensors):
        return ()
    full, windowed = _rotated_widths(model)
    return tuple(
        _table_bytes(table, windowed if table.windowed and windowed else full or windowed)
        for table in model.traits.rotary
        if full or windowed
    )


def _table_bytes(table: RotaryTable, width: int) -> int:
    rows = table.positions * (SECTIONED_FACTOR if table.sectioned else 1)
    return rows * round(width * table.share) * ELEMENT_BYTES


def _rotated_widths(model: Model) -> tuple[int, int]:
    """The width that the full and the windowed layers rotate, 0 where there are none."""
    full = windowed = 0
    for layer, _ in model.layers():
        if isinstance(layer, LatentAttention):
            full = full or layer.rope_dim
        elif isinstance(layer, FullAttention) and layer.window is None:
            full = full or layer.key_dim
        elif isinstance(layer, FullAttention):
            windowed = windowed or layer.key_dim
    return full, windowed


def microscaled_padding(rank: RankWeights, machine: Machine) -> int:
    """What MXFP4 experts grow by where a kernel wants whole tiles.

    vllm/model_executor/layers/fused_moe/oracle/mxfp4.py (0.19.0): Marlin rounds the inner width to
    128 and the hidden one to 256, Blackwell's and
    ROCm's kernels both to 256, Hopper's Triton kernels to 64.
    """
    if not isinstance(rank.storage, Quantised) or rank.storage.method != "mxfp4":
        return 0
    whole = machine.blackwell or machine.vendor == "AMD"
    wide, narrow = (64, 64) if machine.hopper else (256, 256 if whole else 128)
    grown = 0
    for weight in rank.tensors:
        if weight.role in (w.EXPERT_IN, w.EXPERT_OUT):
            rows, cols = (narrow, wide) if weight.role == w.EXPERT_IN else (wide, narrow)
            padded = weight._replace(
                rows=round_up(weight.rows, rows), cols=round_up(weight.cols, cols)
            )
            grown += rank.storage.weight_bytes(padded) - rank.storage.weight_bytes(weight)
    return grown


def latent_copies(rank: RankWeights) -> tuple[int, ...]:
    """Of quantised key and value up-projections a 16-bit copy is kept for decoding.

    vllm/model_executor/layers/attention/mla_attention.py (0.19.0), process_weights_after_loading.
    """
    if not isinstance(rank.storage, Quantised):
        return ()
    ups = [weight for weight in rank.tensors if _is_latent_up(weight, rank.tensors)]
    return tuple(weight.parameters * ELEMENT_BYTES for weight in ups)


def _is_latent_up(weight: Weight, tensors: tuple[Weight, ...]) -> bool:
    if weight.role not in (w.KEY, w.VALUE):
        return False
    return any(t.role == w.LATENT and 0 <= t.rows - weight.cols <= 256 for t in tensors)
