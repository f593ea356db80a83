"""States of fixed size in GGUF files: Mamba, RWKV, gated delta nets, short convolutions, hybrids.

A layer is recurrent where its number of KV heads is 0, unless a class says otherwise (llama.cpp,
May 2026, src/llama-model.cpp, load_hparams). States have the tensors that transformers keeps;
llama.cpp keeps one column less of a convolution and all of it in float32 (src/llama-hparams.cpp,
n_embd_r and n_embd_s).
"""

from __future__ import annotations

from kvplan.core.errors import BadFile
from kvplan.core.layers import FLOAT32_BYTES, Layer, NoCache
from kvplan.core.model import Block
from kvplan.core.states import ConvolutionState, LinearAttention, RecurrentState, StateTensor
from kvplan.readers.families.base import NO_OPTIONS, Options
from kvplan.readers.families.mamba import MODEL_BYTES, Scan, scan_state
from kvplan.readers.families.mamba2 import StateSpace, space_state
from kvplan.readers.gguf.attention import Architecture, Windowed
from kvplan.readers.gguf.latent import Latent
from kvplan.readers.gguf.metadata import Metadata


class Stateful(Architecture):
    """A state in every layer; ``state`` says which."""

    def __init__(self, m: Metadata, options: Options = NO_OPTIONS) -> None:
        super().__init__(m, options)
        self.kept = self.state()

    def state(self) -> Layer:
        """The state of one layer."""
        raise NotImplementedError

    def block(self, place: int) -> Block:
        """The state alone."""
        return (self.kept,)

    def head_width(self, heads_key: str) -> tuple[int, int]:
        """Heads of the state and the width of one, out of ``ssm.inner_size``.

        Raises:
            BadFile: the inner size is no multiple of the heads.
        """
        inner, heads = self.m.whole("ssm.inner_size"), self.m.whole(heads_key)
        if inner % heads:
            raise BadFile(
                f"{self.m.key('ssm.inner_size')} of {self.m.file} is {inner:,}, which is no "
                f"multiple of {self.m.key(heads_key)} ({heads:,})."
            )
        return heads, inner // heads


class Mamba(Stateful):
    """A selective scan."""

    def state(self) -> Layer:
        """A state of its own for each channel."""
        m = self.m
        return scan_state(
            Scan(
                hidden=m.whole("embedding_length"),
                channels=m.whole("ssm.inner_size"),
                state=m.whole("ssm.state_size"),
                kernel=m.whole("ssm.conv_kernel"),
                rank=m.whole("ssm.time_step_rank"),
            )
        )


class Mamba2(Stateful):
    """A state space with one decay a head; ``time_step_rank`` is the number of heads."""

    def state(self) -> Layer:
        """The heads' states, and the convolution over them and the groups."""
        m = self.m
        heads, width = self.head_width("ssm.time_step_rank")
        return space_state(
            StateSpace(
                hidden=m.whole("embedding_length"),
                heads=heads,
                head_dim=width,
                state=m.whole("ssm.state_size"),
                groups=m.whole("ssm.group_count", 0, least=0),
                kernel=m.whole("ssm.conv_kernel"),
            )
        )


class Rwkv(Stateful):
    """RWKV 6 and 7: the last inputs of the token shifts, and a square state a head.

    transformers has no class of these; both are float32 as in llama.cpp.
    """

    shifts: int = 2

    def state(self) -> Layer:
        """Shifts and heads' states."""
        m = self.m
        hidden, width = m.whole("embedding_length"), m.whole("wkv.head_size")
        if hidden % width:
            raise BadFile(
                f"{m.key('embedding_length')} of {m.file} is {hidden:,}, which is no multiple of "
                f"{m.key('wkv.head_size')} ({width:,})."
            )
        shifts = m.whole("token_shift_count", self.shifts)
        return RecurrentState(
            tensors=(
                StateTensor(
                    name="shift", shape=(shifts, hidden), element_bytes=FLOAT32_BYTES, split=None
                ),
                StateTensor(
                    name="wkv",
                    shape=(hidden // width, width, width),
                    element_bytes=FLOAT32_BYTES,
                ),
            )
        )


class Hybrid(Stateful):
    """States in the layers without KV heads, attention in the others."""

    def is_recurrent(self, place: int) -> bool:
        """Whether a layer keeps a state."""
        return not self.kv_heads[place]

    def block(self, place: int) -> Block:
        """One or the other."""
        return (self.kept,) if self.is_recurrent(place) else (self.cache(place),)


class Jamba(Hybrid, Mamba):
    """Selective scans and attention."""


class MambaHybrid(Hybrid, Mamba2):
    """State spaces and attention: Granite 4, PLaMo 2."""


class FalconH1(Mamba2):
    """Both in every layer."""

    def block(self, place: int) -> Block:
        """Attention beside the state."""
        return (self.cache(place), self.kept)


class NemotronH(MambaHybrid):
    """A layer is a state, an attention or a network: where it has a network it keeps nothing."""

    def __init__(self, m: Metadata, options: Options = NO_OPTIONS) -> None:
        super().__init__(m, options)
        self.networks = self.each("feed_forward_length")

    def block(self, place: int) -> Block:
        """Nothing in a network."""
        return (NoCache(),) if self.networks[place] else super().block(place)


class GatedDelta(Hybrid):
    """Gated delta nets, and attention every fourth layer: Qwen3-Next, Qwen3.5.

    ``group_count`` are the key heads, ``state_size`` their width, ``time_step_rank`` the value
    heads.
    """

    def is_recurrent(self, place: int) -> bool:
        """All but the last of each ``full_attention_interval`` layers."""
        if not all(self.kv_heads):
            return super().is_recurrent(place)
        return (place + 1) % self.m.whole("full_attention_interval", 4) != 0

    def state(self) -> Layer:
        """The convolution over queries, keys and values, and the heads' states."""
        m = self.m
        heads, width = self.head_width("ssm.time_step_rank")
        key_width = m.whole("ssm.state_size")
        convolved = heads * width + 2 * m.whole("ssm.group_count") * key_width
        return _delta_state(convolved, m.whole("ssm.conv_kernel"), (heads, key_width, width))


class KimiLinear(Hybrid, Latent):
    """Kimi delta attention, and latent attention in the layers with KV heads: Ling 3 too
    (src/models/bailingmoe3.cpp, July 2026).
    """

    def state(self) -> Layer:
        """Three convolutions in one, and the heads' states."""
        heads, width = max(self.heads, default=1), self.m.whole("kda.head_dim")
        kernel = self.m.whole("ssm.conv_kernel")
        return _delta_state(3 * heads * width, kernel, (heads, width, width))


class Lfm2(Hybrid, Windowed):
    """Short convolutions; attention over a window in all other layers where the file names one."""

    def pattern(self) -> list[int]:
        """Every attention."""
        return [1] * self.count

    def state(self) -> Layer:
        """The last inputs of the convolution."""
        shape = (self.m.whole("embedding_length"), self.m.whole("shortconv.l_cache"))
        return ConvolutionState(
            tensors=(StateTensor(name="conv", shape=shape, element_bytes=MODEL_BYTES),)
        )


def _delta_state(convolved: int, kernel: int, state: tuple[int, int, int]) -> LinearAttention:
    """The last inputs of the convolutions, and the heads' states in float32."""
    return LinearAttention(
        tensors=(
            StateTensor(name="conv", shape=(convolved, kernel), element_bytes=MODEL_BYTES),
            StateTensor(name="delta", shape=state, element_bytes=FLOAT32_BYTES),
        )
    )
