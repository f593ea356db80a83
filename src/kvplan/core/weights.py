"""The tensors of a model by role: how many parameters, how many of them a token passes through.

A ``Weight`` is ``copies`` matrices of ``rows × cols`` (``cols`` is 1 for a vector). Its role says
how an engine treats it: which axis tensor parallelism cuts, whether a quantisation touches it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple, Protocol

EMBEDDING: Final = "embedding"  # rows: vocabulary; cut along it
HEAD: Final = "head"  # the output projection; absent where it is tied to the embedding
POSITION: Final = "position"  # learned positions, token types
QUERY: Final = "query"
KEY: Final = "key"
VALUE: Final = "value"
OUTPUT: Final = "output"  # attention output; cut along its input
LATENT: Final = "latent"  # down-projections of latent attention; replicated
INDEXER: Final = "indexer"
MLP_IN: Final = "mlp_in"  # gate and up
MLP_OUT: Final = "mlp_out"  # down
EXPERT_IN: Final = "expert_in"
EXPERT_OUT: Final = "expert_out"
ROUTER: Final = "router"
STATE_IN: Final = "state_in"  # input projections of a recurrent mixer
STATE_OUT: Final = "state_out"
STATE: Final = "state"  # its convolution, decay, step and skip parameters
NORM: Final = "norm"
BIAS: Final = "bias"
SCALAR: Final = "scalar"  # gates, scales, mixing coefficients: what no engine quantises
TOWER: Final = "tower"  # a vision or audio encoder
PROJECTOR: Final = "projector"  # from a tower to the language model
ENCODER: Final = "encoder"  # the encoder of an encoder-decoder
CODEC: Final = "codec"  # an image or audio tokenizer

ROLES = (
    EMBEDDING, HEAD, POSITION, QUERY, KEY, VALUE, OUTPUT, LATENT, INDEXER, MLP_IN, MLP_OUT,
    EXPERT_IN, EXPERT_OUT, ROUTER, STATE_IN, STATE_OUT, STATE, NORM, BIAS, SCALAR, TOWER,
    PROJECTOR, ENCODER, CODEC,
)  # fmt: skip


class Weight(NamedTuple):
    """``copies`` tensors of ``rows × cols`` elements with one role.

    ``active`` is the number of them that one token passes through; it differs from ``copies`` for
    the experts of a mixture alone, and -1 means all.
    """

    role: str
    rows: int
    cols: int = 1
    copies: int = 1
    active: int = -1

    @property
    def parameters(self) -> int:
        """Elements of all of them."""
        return self.rows * self.cols * self.copies

    @property
    def active_parameters(self) -> int:
        """Elements that a token passes through."""
        return self.rows * self.cols * (self.copies if self.active < 0 else self.active)

    def times(self, count: int) -> Weight:
        """The same in ``count`` layers."""
        role, rows, cols, each, active = self
        return Weight(role, rows, cols, each * count, active if active < 0 else active * count)


class Storage(Protocol):
    """How tensors are stored: what they weigh, and where that is known from."""

    @property
    def exact(self) -> bool:
        """Whether the bytes were read from the checkpoint itself."""

    def num_bytes(self, tensors: tuple[Weight, ...]) -> int:
        """Bytes of all of them."""

    def source(self, parameters: int) -> str:
        """Where the bytes are known from, for a person."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Bytes that a checkpoint's own headers state."""

    total: int
    told_by: str

    exact: ClassVar[bool] = True

    def num_bytes(self, tensors: tuple[Weight, ...]) -> int:
        """The stated total."""
        return self.total

    def source(self, parameters: int) -> str:
        """The headers."""
        return self.told_by


@dataclass(frozen=True, slots=True)
class Unquantised:
    """Every parameter in one type."""

    bytes_each: int
    dtype: str

    exact: ClassVar[bool] = False

    def num_bytes(self, tensors: tuple[Weight, ...]) -> int:
        """Parameters times their size."""
        return count_parameters(tensors)[0] * self.bytes_each

    def source(self, parameters: int) -> str:
        """The multiplication."""
        return f"{parameters:,} parameters × {self.bytes_each} bytes ({self.dtype})"


class ByBlock(NamedTuple):
    """Bytes by where they belong: the input, each block, its experts among them, the output."""

    embedding: int
    blocks: tuple[int, ...]
    experts: tuple[int, ...]
    output: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """All tensors of a model, and how they are stored. Bytes are counted when they are asked.

    ``by_block`` is there where the source places each tensor (a GGUF file).
    """

    tensors: tuple[Weight, ...]
    parameters: int
    active_parameters: int
    storage: Storage
    by_block: ByBlock | None = None

    @property
    def num_bytes(self) -> int:
        """What all tensors weigh as stored."""
        return self.storage.num_bytes(self.tensors)

    @property
    def source(self) -> str:
        """Where the bytes are known from."""
        return self.storage.source(self.parameters)

    @property
    def exact_bytes(self) -> bool:
        """Whether the bytes were read from the checkpoint itself."""
        return self.storage.exact

    def of_role(self, *roles: str) -> int:
        """Parameters of some roles."""
        return sum(weight.parameters for weight in self.tensors if weight.role in roles)


def count_parameters(tensors: tuple[Weight, ...]) -> tuple[int, int]:
    """All parameters, and those that a token passes through."""
    total = active = 0
    for _, rows, cols, count, drawn in tensors:
        size = rows * cols
        total += size * count
        active += size * (count if drawn < 0 else drawn)
    return total, active
