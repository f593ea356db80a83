"""A model as work: what a step of one rank reads and computes, apart from how fast.

    matrices    bytes read once a step, operations by new token            dense layers
    experts     bytes by how many distinct ones the step's tokens draw     mixtures
    head        read once, computed for each sequence                      logits
    looks       bytes and operations by the tokens that are seen           attention, a window each
    state       read and written once a sequence                           recurrent layers

The stages of a pipeline hold parts of it; the shape is of all of them together.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

from kvplan.core import weights as w
from kvplan.core.model import Model
from kvplan.core.quantisation import Quantised
from kvplan.core.weights import Measured, Storage, Weight, count_parameters
from kvplan.engines.weights import NOT_READ, Given, Layout, RankWeights, rank_weights
from kvplan.planning.speed import moved as moved_by
from kvplan.planning.speed.cut import Cut
from kvplan.planning.speed.looks import Look, kernel_layers, looks_of, state_bytes

EXPERTS: Final = frozenset({w.EXPERT_IN, w.EXPERT_OUT})
# The words of a scheme's name, and the type that its matrices are multiplied in.
KINDS: Final = (
    ("mxfp4", "mxfp4"), ("nvfp4", "fp4"), ("fp8 blocks", "fp8 blocks"), ("fp8", "fp8"),
    ("int8", "int8"),
)  # fmt: skip
GGML_BITS: Final = 12  # an element; blocks of integers have fewer (Q8_0: 8.5), types without more
REMEMBERED: Final = 512


class Matrices(NamedTuple):
    """``num_bytes`` as stored, ``parameters`` that one token passes through, one rank's.

    ``moved_bytes`` are a token's between the products, ``narrow_bytes`` the same where they are
    multiplied in fewer than 16 bits.
    """

    num_bytes: float
    parameters: float
    kind: str
    moved_bytes: float = 0.0
    narrow_bytes: float = 0.0


class Experts(NamedTuple):
    """All experts of one rank, of which a token draws ``drawn_share`` in each of ``layers``.

    ``even`` where the router is kept from favouring any.

    ``matrices`` are all of them, their ``parameters`` what one token of the group computes on this
    rank, on average.
    """

    matrices: Matrices
    drawn_share: float
    layers: int
    even: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """One rank's work in a step, of a model cut one way.

    ``hidden`` and ``layers`` are what a link carries and how often, ``launches`` the layers counted
    by their kernels; ``mixed`` the layers that have experts.
    """

    cut: Cut
    dense: Matrices
    experts: Experts | None
    head: Matrices
    looks: tuple[Look, ...]
    state_bytes: float
    hidden: int
    layers: int
    launches: float
    vocabulary: int
    exact: bool

    @property
    def mixed(self) -> int:
        """Layers with experts."""
        return self.experts.layers if self.experts else 0

    @property
    def stored_bytes(self) -> float:
        """All weights that steps read in turn."""
        experts = self.experts.matrices.num_bytes if self.experts else 0.0
        return self.dense.num_bytes + self.head.num_bytes + experts

    @property
    def read_bytes(self) -> float:
        """Weights of a step of one token."""
        experts = self.experts
        drawn = experts.matrices.num_bytes * experts.drawn_share if experts else 0.0
        return self.dense.num_bytes + self.head.num_bytes + drawn


_SHAPES: OrderedDict[tuple[int, Cut], tuple[Model, Shape | None]] = OrderedDict()


def shape_of(model: Model, cut: Cut) -> Shape | None:
    """The shape of a model cut so; None where its weights are not known.

    Remembered by the model object: it is asked again for every card and batch.
    """
    key = (id(model), cut)
    found = _SHAPES.get(key)
    if found is not None and found[0] is model:
        _SHAPES.move_to_end(key)
        return found[1]
    shape = _shape(model, cut)
    _SHAPES[key] = (model, shape)
    while len(_SHAPES) > REMEMBERED:
        _SHAPES.popitem(last=False)
    return shape


def _shape(model: Model, cut: Cut) -> Shape | None:
    given = Given(dtype=cut.dtype, quantization=cut.quantization, total_bytes=cut.weights_bytes)
    # Experts are cut or dealt over all ranks of the group: either way a rank has its part of them.
    attention = rank_weights(model, Layout(tp=cut.tp), given)
    if attention is None:
        return None
    whole = rank_weights(model, Layout(tp=1), given)
    assert whole is not None
    experts = _experts(model, whole, cut)
    head = _head(model, attention, cut)
    return Shape(
        cut=cut,
        dense=_dense(model, attention, cut, without_head=head is not None),
        experts=experts,
        head=head or Matrices(0, 0, "16"),
        looks=looks_of(model, cut),
        state_bytes=state_bytes(model, cut),
        hidden=model.hidden_size or 0,
        layers=max(1, len(model.blocks)),
        launches=kernel_layers(model),
        vocabulary=model.vocab_size or 0,
        exact=attention.storage.exact,
    )


def _bytes_of(rank: RankWeights, tensors: tuple[Weight, ...]) -> float:
    """Of a measured file only the sum is known: it is shared out by elements."""
    if not isinstance(rank.storage, Measured):
        return rank.storage.num_bytes(tensors)
    whole = count_parameters(rank.tensors)[0]
    return rank.num_bytes * count_parameters(tensors)[0] / whole if whole else rank.num_bytes


def _kind(storage: Storage, role: str) -> str:
    """The type that a role's matrices are multiplied in: 16 bits unless most of them are stored in
    a type with units of its own.
    """
    if not isinstance(storage, Quantised):
        return "16"
    parts = storage.shares.get(role, ())
    scheme = max(parts, key=lambda part: part[1], default=None)
    if scheme is None or scheme[1] < 0.5:
        return "16"
    name = f"{scheme[0].name} {storage.method}".lower()
    return next((kind for word, kind in KINDS if word in name), "16")


def _multiplied(rank: RankWeights, cut: Cut, role: str, num_bytes: float, parameters: int) -> str:
    """``_kind`` of some matrices; ggml's by how many bits they have."""
    if not cut.ggml:
        return _kind(rank.storage, role)
    return "ggml" if num_bytes * 8 < GGML_BITS * parameters else "ggml 16"


def _dense(model: Model, rank: RankWeights, cut: Cut, *, without_head: bool) -> Matrices:
    if not rank.tensors:
        return Matrices(rank.num_bytes, rank.num_bytes / 2, "16")
    left = NOT_READ | EXPERTS | ({w.HEAD} if without_head else set())
    tensors = tuple(t for t in rank.tensors if t.role not in left)
    largest = max(tensors, key=lambda t: t.parameters, default=None)
    num_bytes, parameters = _bytes_of(rank, tensors), count_parameters(tensors)[0]
    role = largest.role if largest else w.MLP_IN
    hidden, blocks = model.hidden_size or 0, len(model.blocks)
    moved = partial(moved_by.dense_bytes, tensors, hidden, blocks)
    return Matrices(
        num_bytes,
        parameters,
        _multiplied(rank, cut, role, num_bytes, parameters),
        moved(narrow=False),
        moved(narrow=True),
    )


def _head(model: Model, rank: RankWeights, cut: Cut) -> Matrices | None:
    """The output projection, which is the embedding where none is stored."""
    found = tuple(t for t in rank.tensors if t.role == w.HEAD)
    if not found:
        found = tuple(t for t in rank.tensors if t.role == w.EMBEDDING and t.cols > 1)[:1]
    if not found or not model.vocab_size:
        return None
    num_bytes, parameters = _bytes_of(rank, found), count_parameters(found)[0]
    kind = _multiplied(rank, cut, w.HEAD, num_bytes, parameters)
    return Matrices(num_bytes, parameters, kind)


def _experts(model: Model, rank: RankWeights, cut: Cut) -> Experts | None:
    tensors = tuple(t for t in rank.tensors if t.role in EXPERTS and t.active >= 0)
    if not tensors:
        return None
    first = max(tensors, key=lambda t: t.parameters)
    num_bytes, (stored, active) = _bytes_of(rank, tensors), count_parameters(tensors)
    routers = sum(t.copies for t in rank.tensors if t.role == w.ROUTER and t.cols > 1)
    ranks = max(1, cut.expert_ranks)
    moved = partial(moved_by.expert_bytes, tensors, ranks, dealt=cut.dealt)
    return Experts(
        matrices=Matrices(
            num_bytes / ranks,
            active / ranks,
            _multiplied(rank, cut, first.role, num_bytes, stored),
            moved(narrow=False),
            moved(narrow=True),
        ),
        drawn_share=first.active / first.copies,
        layers=min(routers, len(model.blocks)) or len(model.blocks),
        even=model.traits.even_experts,
    )
