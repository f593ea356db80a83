"""One rank's weights: every tensor cut as tensor, expert and pipeline parallelism cut it.

    embedding, head      rows, padded to a multiple of 64, over the ranks
    query, up, gate      rows over the ranks                (column parallel)
    key, value           heads over the ranks; with fewer heads than ranks one is replicated
    output, down         columns over the ranks             (row parallel)
    experts              each cut like an MLP, or whole experts dealt out (expert parallel)
    latent down, router, norms, biases, indexer             whole on every rank
    a pipeline stage     its share of the layers; the embedding on the first, the head on the last

vllm/model_executor/layers/{linear,vocab_parallel_embedding}.py, fused_moe/layer.py and
distributed/utils.py (0.32.0); SGLang and TensorRT-LLM cut the same way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from kvplan.core import weights as w
from kvplan.core.errors import BadValue
from kvplan.core.layers import FullAttention
from kvplan.core.model import Model
from kvplan.core.quantisation import Quantised
from kvplan.core.units import ceil_div, round_up
from kvplan.core.weight_formats import format_of_word
from kvplan.core.weights import Measured, Storage, Unquantised, Weight, count_parameters
from kvplan.engines.base import Asked

VOCABULARY_MULTIPLE: Final = 64  # DEFAULT_VOCAB_PADDING_SIZE

TABLES = frozenset({w.EMBEDDING, w.HEAD})
HEADS = frozenset({w.KEY, w.VALUE})
ROWS = frozenset({w.QUERY, w.MLP_IN, w.STATE_IN, w.STATE})
COLUMNS = frozenset({w.OUTPUT, w.MLP_OUT, w.STATE_OUT})
EXPERTS = frozenset({w.EXPERT_IN, w.EXPERT_OUT})
# Cut in both ways inside; half of what a tower has is as good as a rule for each of them.
TOWERS = frozenset({w.TOWER, w.ENCODER})
OUTSIDE_LAYERS = frozenset({w.EMBEDDING, w.HEAD, w.POSITION, w.TOWER, w.PROJECTOR, w.CODEC})
# What a decode step looks up a row of, or does not touch at all.
NOT_READ = frozenset({w.EMBEDDING, w.POSITION, w.TOWER, w.PROJECTOR, w.ENCODER, w.CODEC})
TABLE_ELEMENT_BYTES: Final = 2  # no recipe stores a table in more

# How far a scheme's bytes are off where the checkpoint was not read: layers that a recipe leaves
# out, scales that a kernel repacks.
QUANTISED_ERROR: Final = 0.02
GUESSED_ERROR: Final = 0.06
NAMED_ERROR: Final = 0.1
UNQUANTISED_ERROR: Final = 0.002
MEASURED_ERROR: Final = 0.005  # a file's bytes are shared out evenly
FROM_FILE: Final = "quantization_config"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How a model is cut: ranks of a tensor-parallel group, stages, and who holds which expert."""

    tp: int = 1
    pp: int = 1
    expert_ranks: int = 0
    towers_cut: bool = True


class RankWeights(NamedTuple):
    """The tensors of the fullest rank, what they weigh, and where that is known from."""

    tensors: tuple[Weight, ...]
    storage: Storage
    num_bytes: int
    error_bytes: int
    source: str


class Given(NamedTuple):
    """What the flags say of the weights: a type, a quantisation, or the whole model's bytes."""

    dtype: str = ""
    quantization: str = ""
    total_bytes: int | None = None
    without_head: bool = False
    without_towers: bool = False


AS_STORED: Final = Given()
ONE_RANK: Final = Layout()


def rank_weights(
    model: Model, layout: Layout = ONE_RANK, given: Given = AS_STORED
) -> RankWeights | None:
    """The fullest rank's weights; None where neither the source nor a flag knows them.

    Args:
        model: its inventory says what there is, its storage how it is stored.
        layout: how it is cut.
        given: what flags say instead.
    """
    if model.weights is None:
        if given.total_bytes is None:
            return None
        share = ceil_div(given.total_bytes, layout.tp * layout.pp)
        even = "flag, split evenly" if layout.tp * layout.pp > 1 else "flag"
        return RankWeights((), Measured(share, "flag"), share, 0, even)
    held = tuple(_held(model, given))
    fullest = max(_stages(model, layout, held), key=_elements)
    storage, error, source = _storage(model, given)
    if isinstance(storage, Measured):
        # Every tensor of a measured file weighs the same per element, for want of better.
        whole = _elements(model.weights.tensors)
        num_bytes = storage.total * _elements(fullest) // max(whole, 1)
    else:
        num_bytes = storage.num_bytes(fullest)
    cut = _said(layout)
    return RankWeights(fullest, storage, num_bytes, round(num_bytes * error), f"{source}{cut}")


def asked_weights(model: Model, layout: Layout, asked: Asked) -> RankWeights:
    """The fullest rank's weights under the flags of a question.

    Raises:
        BadValue: neither the source nor a flag knows them.
    """
    given = Given(
        dtype=asked.flags.get("--dtype", ""),
        quantization=asked.flags.get("--quantization", ""),
        total_bytes=asked.weights_bytes,
    )
    found = rank_weights(model, layout, given)
    if found is None:
        raise unknown_weights(model)
    return found


def unknown_weights(model: Model) -> BadValue:
    """What is said where an engine cannot go on without them."""
    return BadValue(
        f"What the weights of {model.name} weigh cannot be told from its config.",
        "Pass it with --weights-bytes, as in --weights-bytes 14.9GiB.",
    )


def read_bytes(model: Model, rank: RankWeights) -> int:
    """The least of a rank's weights that a decode step reads.

    Of a mixture the experts of one token, as all tokens may draw the same; of an embedding nothing
    but a row, unless it is the head too.
    """
    if model.weights is None or not rank.tensors:
        return rank.num_bytes
    tied = not model.weights.of_role(w.HEAD)
    read = tuple(t for t in rank.tensors if t.role not in NOT_READ or (tied and _is_table(t)))
    active = tuple(
        t if t.active < 0 else t._replace(copies=min(t.active, t.copies), active=-1) for t in read
    )
    if not isinstance(rank.storage, Measured):
        return rank.storage.num_bytes(active)
    # Of a measured file only the sum is known: what is left out is taken at its widest.
    left = _elements(rank.tensors) - _elements(read)
    kept = max(0, rank.num_bytes - left * TABLE_ELEMENT_BYTES)
    return kept * _elements(active) // max(_elements(read), 1)


def drawn_share(model: Model) -> float:
    """The part of a mixture's experts that one token passes through; 1 without experts."""
    tensors = model.weights.tensors if model.weights else ()
    found, drawn = count_parameters(tuple(t for t in tensors if t.role in EXPERTS))
    return drawn / found if found else 1.0


def _is_table(weight: Weight) -> bool:
    return weight.role == w.EMBEDDING and weight.cols > 1


def _held(model: Model, given: Given) -> Iterator[Weight]:
    """The tensors that are loaded at all."""
    assert model.weights is not None
    for weight in model.weights.tensors:
        if given.without_head and weight.role == w.HEAD:
            continue
        if given.without_towers and weight.role in (w.TOWER, w.PROJECTOR):
            continue
        yield weight


def _elements(tensors: tuple[Weight, ...]) -> int:
    return count_parameters(tensors)[0]


def _stages(model: Model, layout: Layout, held: tuple[Weight, ...]) -> Iterator[tuple[Weight, ...]]:
    """The tensors of the stages that can be the fullest, each cut over its ranks."""
    cut = tuple(_cut(weight, layout, _kv_heads(model, weight)) for weight in held)
    if layout.pp == 1:
        yield cut
        return
    depth = len(model.blocks)
    sizes = stage_layers(depth, layout.pp)
    inside = [weight for weight in cut if weight.role not in OUTSIDE_LAYERS]
    tied = not any(weight.role == w.HEAD for weight in held)
    for place in {0, layout.pp // 2, layout.pp - 1}:
        part = [_part(weight, sizes[place], depth) for weight in inside]
        part += [weight for weight in cut if _outside(weight.role, place, layout.pp, tied)]
        yield tuple(part)


def stage_layers(depth: int, stages: int) -> list[int]:
    """Layers of each pipeline stage; what is left over goes to the last but one and before it.

    ``stage_layers(32, 3) == [10, 11, 11]`` would be even; vLLM has ``[11, 11, 10]``: the last
    holds the head (vllm/distributed/utils.py, get_pp_indices, 0.32.0).
    """
    sizes = [depth // stages] * stages
    for place in range(depth % stages):
        sizes[-(place + 2)] += 1
    return sizes


def _outside(role: str, place: int, stages: int, tied: bool) -> bool:
    """Whether a stage has a tensor that belongs to no layer."""
    if role == w.HEAD:
        return place == stages - 1
    if role == w.EMBEDDING:
        return place == 0 or (tied and place == stages - 1)
    return role in OUTSIDE_LAYERS and place == 0


def _part(weight: Weight, layers: int, depth: int) -> Weight:
    """A stage's share of a tensor that layers repeat."""
    role, rows, cols, copies, active = weight
    if copies == 1:
        return weight
    drawn = active if active < 0 else ceil_div(active * layers, depth)
    return Weight(role, rows, cols, ceil_div(copies * layers, depth), drawn)


def _kv_heads(model: Model, weight: Weight) -> int:
    """KV heads that a key or value projection makes; 0 where it is none."""
    if weight.role not in HEADS:
        return 0
    for layer, _ in model.layers():
        if isinstance(layer, FullAttention):
            width = layer.key_dim if weight.role == w.KEY else layer.value_dim
            if width and layer.kv_heads * width == weight.rows:
                return layer.kv_heads
    return 0


def _cut(weight: Weight, layout: Layout, kv_heads: int) -> Weight:
    """One rank's share of a tensor."""
    role, rows, cols, copies, active = weight
    tp = layout.tp
    if role in TABLES:
        padded = round_up(rows, VOCABULARY_MULTIPLE) if cols > 1 else rows
        return Weight(role, ceil_div(padded, tp), cols, copies, active)
    if tp == 1 and layout.expert_ranks < 2:
        return weight
    if role in EXPERTS and layout.expert_ranks > 1:
        ranks = layout.expert_ranks
        return Weight(role, rows, cols, ceil_div(copies, ranks), _drawn(active, ranks))
    if role in HEADS:
        ways = min(tp, kv_heads) if kv_heads else tp
        return Weight(role, ceil_div(rows, ways), cols, copies, active)
    if role in ROWS or role == w.EXPERT_IN:
        return Weight(role, ceil_div(rows, tp), cols, copies, active)
    if role in COLUMNS or role == w.EXPERT_OUT:
        return Weight(role, rows, ceil_div(cols, tp), copies, active)
    if role in TOWERS and layout.towers_cut and cols > 1 and copies > 1:
        return Weight(role, ceil_div(rows, tp), cols, copies, active)
    return weight


def _drawn(active: int, ranks: int) -> int:
    return active if active < 0 else ceil_div(active, ranks)


def _storage(model: Model, given: Given) -> tuple[Storage, float, str]:
    """How the tensors are stored in memory, how far that may be off, and why."""
    weights = model.weights
    assert weights is not None
    if given.total_bytes is not None:
        return Measured(given.total_bytes, "flag"), 0.0, "flag"
    own = weights.storage
    if given.quantization and not isinstance(own, Quantised | Measured):
        found = format_of_word(given.quantization)
        if found is not None:
            return found, GUESSED_ERROR, found.source(weights.parameters)
    if isinstance(own, Unquantised):
        size = {"float32": 4, "float": 4}.get(given.dtype, 2 if own.bytes_each > 1 else 1)
        kept = own if size == own.bytes_each else Unquantised(size, given.dtype or "16 bits")
        return kept, UNQUANTISED_ERROR, kept.source(weights.parameters)
    read = isinstance(own, Quantised) and own.told_by == FROM_FILE
    error = MEASURED_ERROR if own.exact else QUANTISED_ERROR if read else NAMED_ERROR
    return own, error, own.source(weights.parameters)


def _said(layout: Layout) -> str:
    """How it was cut, for a person."""
    parts = []
    if layout.tp > 1:
        parts.append(f"{layout.tp} tensor-parallel ranks")
    if layout.pp > 1:
        parts.append(f"{layout.pp} stages")
    if layout.expert_ranks > 1:
        parts.append(f"experts over {layout.expert_ranks} ranks")
    return f", cut over {', '.join(parts)}" if parts else ""
