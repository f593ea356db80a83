"""What one layer keeps, in pages of a block: the kinds of spec and what each asks of a pool.

    page          bytes of one block of one layer
    blocks        what one request of the longest length may hold at once (start-up sizing)
    held          what a request of so many tokens holds while it decodes

vLLM 0.32.0, v1/kv_cache_interface.py: FullAttentionSpec, MLAAttentionSpec, SlidingWindowSpec,
SlidingWindowMLASpec, ChunkedLocalAttentionSpec, MambaSpec, CrossAttentionSpec, CircularBufferSpec.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, TypeVar

from kvplan.core.units import ceil_div


class Request(NamedTuple):
    """One request at its longest, as the start-up sizing sees it.

    ``in_flight`` are the tokens that may be scheduled and not yet settled; ``dcp`` the ranks of
    decode context parallelism over which tokens are dealt.
    """

    max_len: int
    in_flight: int
    dcp: int = 1
    encoder_tokens: int = 0


S = TypeVar("S", bound="Spec")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """One layer's pages; ``shape`` tells apart specs whose pages happen to be equal."""

    block_size: int
    page_bytes: int
    shape: tuple[Hashable, ...] = ()

    kind: ClassVar[str] = "full_attention"
    engine_name: ClassVar[str] = ""
    can_pad: ClassVar[bool] = True
    scales_with_block: ClassVar[bool] = True
    sharded: ClassVar[bool] = True

    def blocks(self, request: Request) -> int:
        """Blocks that one request of the longest length may hold at once."""
        raise NotImplementedError

    def held(self, tokens: int, request: Request) -> int:
        """Blocks that a request of so many tokens holds while it decodes."""
        return self.blocks(request._replace(max_len=tokens))

    @property
    def uniform_key(self) -> Hashable:
        """Specs with one key always need the same number of blocks (is_uniform_type)."""
        return (type(self), self.block_size)

    def padded_to(self: S, page_bytes: int) -> S:
        """The same in a larger page."""
        return replace(self, page_bytes=page_bytes)

    def scaled_to(self: S, page_bytes: int) -> S:
        """The same with as many more tokens as fill a page of this size."""
        ratio = page_bytes // self.page_bytes
        return replace(self, block_size=self.block_size * ratio, page_bytes=page_bytes)


class FullSpec(Spec):
    """Every token."""

    __slots__ = ()
    engine_name: ClassVar[str] = "FullAttentionSpec"

    def blocks(self, request: Request) -> int:
        """The length in blocks; with context parallelism a rank's share of it."""
        return ceil_div(ceil_div(request.max_len, request.dcp), self.block_size)

    @property
    def uniform_key(self) -> Hashable:
        """Latent rows and indexer keys count as full attention."""
        return ("full", self.block_size)


class LatentSpec(FullSpec):
    """A latent row, or an indexer's key, of every token; read as whole rows, so never padded."""

    __slots__ = ()
    kind: ClassVar[str] = "latent_attention"
    engine_name: ClassVar[str] = "MLAAttentionSpec"
    can_pad: ClassVar[bool] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowSpec(Spec):
    """The last ``size - 1`` tokens, those in flight, and ``extra`` that drafts look back on."""

    size: int
    extra: int = 0

    kind: ClassVar[str] = "sliding_window"
    engine_name: ClassVar[str] = "SlidingWindowSpec"

    def blocks(self, request: Request) -> int:
        """One more than the tokens fill: a window seldom begins where a block does.

        With blocks of 4 a window of CDEF lies in [ABCD][EF], two blocks for four tokens.
        """
        behind = self.size - 1 + self.extra
        return ceil_div(min(behind + request.in_flight, request.max_len), self.block_size) + 1

    def held(self, tokens: int, request: Request) -> int:
        """The window's blocks, or the tokens' where there are fewer."""
        whole = ceil_div(tokens, self.block_size)
        return min(whole, ceil_div(self.size - 1 + self.extra, self.block_size) + 1)

    @property
    def uniform_key(self) -> Hashable:
        """One window, one number of blocks."""
        return (type(self), self.block_size, self.size)


class LatentWindowSpec(WindowSpec):
    """A window of latent rows (DeepSeek V4)."""

    __slots__ = ()
    engine_name: ClassVar[str] = "SlidingWindowMLASpec"
    can_pad: ClassVar[bool] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkSpec(Spec):
    """The tokens of the current chunk, and those in flight."""

    size: int

    kind: ClassVar[str] = "chunked_attention"
    engine_name: ClassVar[str] = "ChunkedLocalAttentionSpec"

    def blocks(self, request: Request) -> int:
        """A chunk and what is in flight."""
        return ceil_div(min(self.size + request.in_flight, request.max_len), self.block_size)

    def held(self, tokens: int, request: Request) -> int:
        """At most a chunk."""
        return ceil_div(min(self.size, tokens), self.block_size)

    @property
    def uniform_key(self) -> Hashable:
        """One chunk, one number of blocks."""
        return (type(self), self.block_size, self.size)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateSpec(Spec):
    """A recurrent state: a block holds one, whatever the length.

    ``mode`` is how states are kept for prefix caching: ``none`` the running one, ``align`` that
    and the last block's, ``all`` one at every block. ``drafts`` are the states of draft tokens,
    ``checkpoints`` those of a prefill that others may reuse.
    """

    mode: str = "none"
    drafts: int = 0
    checkpoints: int = 0

    kind: ClassVar[str] = "recurrent_state"
    engine_name: ClassVar[str] = "MambaSpec"
    scales_with_block: ClassVar[bool] = False
    sharded: ClassVar[bool] = False

    def blocks(self, request: Request) -> int:
        """States of one request."""
        if self.mode == "align":
            return 2 + self.drafts + self.checkpoints
        if self.mode == "all":
            return ceil_div(request.max_len, self.block_size) + self.drafts
        return 1 + self.drafts

    @property
    def uniform_key(self) -> Hashable:
        """One page, one number of states."""
        return (type(self), self.block_size, self.page_bytes, self.drafts, self.checkpoints)


class CrossSpec(Spec):
    """Keys and values over an encoder's tokens."""

    __slots__ = ()
    kind: ClassVar[str] = "cross_attention"
    engine_name: ClassVar[str] = "CrossAttentionSpec"

    def blocks(self, request: Request) -> int:
        """The encoder's tokens in blocks."""
        return ceil_div(request.encoder_tokens, self.block_size)


class RingSpec(Spec):
    """The keys of the group of tokens that is still open: one block a request."""

    __slots__ = ()
    kind: ClassVar[str] = "recurrent_state"
    engine_name: ClassVar[str] = "CircularBufferSpec"
    sharded: ClassVar[bool] = False

    def blocks(self, request: Request) -> int:
        """One."""
        return 1
