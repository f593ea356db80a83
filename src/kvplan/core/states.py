"""States of fixed size: what recurrent layers and short convolutions keep in place of tokens."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from kvplan.core.formats import Format, Stored
from kvplan.core.layers import Layer
from kvplan.core.units import ceil_div


@dataclass(frozen=True, slots=True, kw_only=True)
class StateTensor:
    """One tensor of a recurrent state: its shape for one sequence and its element size in bytes.

    ``element_bytes`` is 2 where the tensor follows the model's 16-bit type and 4 where the model
    fixes float32. ``split`` is the axis that tensor parallelism cuts, None where it is whole.
    """

    name: str
    shape: tuple[int, ...]
    element_bytes: int
    split: int | None = 0

    @property
    def num_bytes(self) -> int:
        """Bytes of the tensor."""
        total = self.element_bytes
        for length in self.shape:
            total *= length
        return total

    def on_rank(self, tp: int) -> StateTensor:
        """The share of one of ``tp`` ranks."""
        if self.split is None or tp == 1:
            return self
        shape = list(self.shape)
        shape[self.split] = ceil_div(shape[self.split], tp)
        return replace(self, shape=tuple(shape))


@dataclass(frozen=True, slots=True, kw_only=True)
class RecurrentState(Layer):
    """A state of fixed size: Mamba 1 and 2, RWKV, RG-LRU, xLSTM."""

    tensors: tuple[StateTensor, ...]

    kind: ClassVar[str] = "recurrent_state"

    def stored(self, tokens: int, fmt: Format) -> Stored:
        """The state, from the first token on, in its own types."""
        total = 0
        for tensor in self.tensors:
            total += tensor.num_bytes
        return Stored(total)

    def on_rank(self, tp: int) -> Layer:
        """Each tensor is cut along its own axis."""
        return replace(self, tensors=tuple(tensor.on_rank(tp) for tensor in self.tensors))

    def formula(self, fmt: Format) -> str:
        """Each tensor's shape."""
        parts = (
            f"{t.name} {' × '.join(map(str, t.shape))} × {t.element_bytes} B" for t in self.tensors
        )
        return f"{' + '.join(parts)} = {self.fixed_bytes(fmt):,} B, fixed"


class LinearAttention(RecurrentState):
    """A linear attention's state: gated delta net, Kimi delta attention, lightning attention."""

    __slots__ = ()
    kind: ClassVar[str] = "linear_attention"


class ConvolutionState(RecurrentState):
    """The last inputs of a short convolution (LFM2)."""

    __slots__ = ()
    kind: ClassVar[str] = "convolution_state"
