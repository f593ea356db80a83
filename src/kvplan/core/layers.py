"""What a layer keeps of the tokens it has seen: one frozen type a kind.

Every kind answers the same questions, for one sequence in one layer:

    stored(tokens, fmt)      elements and scales, in bytes, after ``tokens`` tokens
    fixed_bytes              the part that is there from the first token and never grows
    per_token(fmt)           bytes that one more token adds, where that is one figure, else None
    multi_head()             the same layer with a key and a value for every query head
    on_rank(tp)              its share under tensor parallelism

The numbers are what transformers keeps (the *raw* size); an engine's pages are rounded from the
same shapes in ``kvplan.engines``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from kvplan.core.formats import NOTHING, Format, Stored
from kvplan.core.units import ceil_div

FLOAT32_BYTES = 4
INT64_BYTES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """A layer that keeps nothing; the contract of every kind."""

    note: str = ""

    kind: ClassVar[str] = "none"

    def stored(self, tokens: int, fmt: Format) -> Stored:
        """Bytes kept after ``tokens`` tokens of one sequence; never negative, 0 at 0 tokens plus
        the fixed part.
        """
        return NOTHING

    def fixed_bytes(self, fmt: Format) -> int:
        """Bytes that one sequence keeps whatever its length."""
        return self.stored(0, fmt).total

    def per_token(self, fmt: Format) -> int | None:
        """Bytes one more token adds; None where no single figure exists."""
        return 0

    @property
    def window(self) -> int | None:
        """The tokens a windowed or chunked layer looks back; None for the others."""
        return None

    @property
    def period(self) -> int:
        """Tokens after which the curve repeats its shape (1 unless the layer compresses)."""
        return 1

    @property
    def heads(self) -> int | None:
        """KV heads, where the kind has them."""
        return None

    @property
    def key_width(self) -> int | None:
        """Elements of a key of one head, where the kind has keys."""
        return None

    @property
    def value_width(self) -> int | None:
        """Elements of a value of one head, where the kind has values."""
        return None

    def multi_head(self) -> Layer:
        """The same layer keeping a key and a value for every query head."""
        return self

    def on_rank(self, tp: int) -> Layer:
        """What one of ``tp`` ranks keeps."""
        return self

    def formula(self, fmt: Format) -> str:
        """The arithmetic of ``per_token`` or the fixed part, with this layer's numbers."""
        return "nothing"


def mean_slope(layer: Layer, fmt: Format) -> int:
    """Bytes a token adds far from any edge, as the mean over 1,024 tokens."""
    return (layer.stored(1 << 20, fmt).total - layer.stored((1 << 20) - 1024, fmt).total) // 1024


def index_keys(tokens: int, dim: int, element_bytes: int, fmt: Format) -> Stored:
    """An indexer's keys: one of ``dim`` elements a token, in its own type or in the format."""
    if element_bytes:
        return Stored(tokens * dim * element_bytes)
    return fmt.keys(tokens, 1, dim)


class NoCache(Layer):
    """A layer without attention or state (an MLP-only block)."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedCache(Layer):
    """A layer that reads the cache of another layer and keeps none of its own.

    ``num_kv_shared_layers`` of Gemma 3n and Gemma 4; ``source`` is the kind it reads.
    """

    source: str = ""

    kind: ClassVar[str] = "shared"

    def formula(self, fmt: Format) -> str:
        """Why it is nothing."""
        return f"nothing: reads the {self.source.replace('_', ' ') or 'cache'} of an earlier layer"


@dataclass(frozen=True, slots=True, kw_only=True)
class FullAttention(Layer):
    """Keys and values of every token: ``kv_heads × (key_dim + value_dim)`` elements a token.

    ``index_dim`` is the width of an indexer's key beside them (sparse attention over a full cache,
    one shared key a token); ``index_bytes`` fixes its element size where the model does. ``copies``
    is how often transformers keeps each head (Falcon's are broadcast first); an engine keeps one.
    """

    kv_heads: int
    key_dim: int
    value_dim: int
    query_heads: int
    index_dim: int = 0
    index_bytes: int = 0
    copies: int = 1

    kind: ClassVar[str] = "full_attention"

    def kept_tokens(self, tokens: int) -> int:
        """Tokens whose keys are still there."""
        return tokens

    def stored(self, tokens: int, fmt: Format) -> Stored:
        """Keys and values of the kept tokens, and the indexer's keys of all."""
        kept, heads = self.kept_tokens(tokens), self.kv_heads * self.copies
        total = fmt.keys(kept, heads, self.key_dim)
        if self.value_dim:
            total += fmt.values(kept, heads, self.value_dim)
        if self.index_dim:
            total += index_keys(kept, self.index_dim, self.index_bytes, fmt)
        return total

    def per_token(self, fmt: Format) -> int | None:
        """The slope; None for a format whose recent window costs more."""
        return mean_slope(self, fmt) if fmt.linear else None

    @property
    def heads(self) -> int | None:
        """KV heads."""
        return self.kv_heads

    @property
    def key_width(self) -> int | None:
        """Elements of one head's key."""
        return self.key_dim

    @property
    def value_width(self) -> int | None:
        """Elements of one head's value."""
        return self.value_dim

    def multi_head(self) -> Layer:
        """A key and a value for each query head."""
        return replace(self, kv_heads=max(self.query_heads, self.kv_heads), copies=1)

    def on_rank(self, tp: int) -> Layer:
        """KV heads are split; with fewer heads than ranks each rank keeps one, replicated.

        vllm/model_executor/layers/linear.py (0.32.0), QKVParallelLinear: num_kv_heads is
        max(1, total_num_kv_heads // tp_size).
        """
        return replace(
            self,
            kv_heads=max(1, ceil_div(self.kv_heads, tp)),
            query_heads=max(1, ceil_div(self.query_heads, tp)),
        )

    def formula(self, fmt: Format) -> str:
        """Heads × widths × bytes."""
        widths = (
            f"2 × {self.kv_heads} KV heads × {self.key_dim}"
            if self.key_dim == self.value_dim
            else f"{self.kv_heads} KV heads × ({self.key_dim} + {self.value_dim})"
        )
        index = f" + indexer key {self.index_dim}" if self.index_dim else ""
        copies = f" × {self.copies} copies" if self.copies > 1 else ""
        slope = mean_slope(self, fmt)
        return f"{widths}{copies}{index} elements in {fmt.name} = {slope:,} B a token"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlidingWindow(FullAttention):
    """Attention over the last ``size`` tokens.

    transformers keeps ``size - 1`` of them between steps: the next token brings itself
    (transformers 5.24.0, cache_utils.py, DynamicSlidingWindowLayer).
    """

    size: int

    kind: ClassVar[str] = "sliding_window"

    def kept_tokens(self, tokens: int) -> int:
        """At most ``size - 1`` tokens."""
        return min(tokens, self.size - 1)

    def per_token(self, fmt: Format) -> int | None:
        """None: the cost stops at the window."""
        return None

    @property
    def window(self) -> int | None:
        """The window in tokens."""
        return self.size

    def formula(self, fmt: Format) -> str:
        """The slope and where it stops."""
        whole = FullAttention(
            kv_heads=self.kv_heads,
            key_dim=self.key_dim,
            value_dim=self.value_dim,
            query_heads=self.query_heads,
        )
        return f"{whole.formula(fmt)}, for the last {self.size - 1:,} tokens"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkedAttention(SlidingWindow):
    """Attention within a chunk of ``size`` tokens (Llama 4); kept as a window of that size."""

    kind: ClassVar[str] = "chunked_attention"


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentAttention(Layer):
    """Multi-head latent attention: one compressed vector and one rotary key a token.

    ``rank + rope_dim`` elements, whatever the number of heads.
    """

    rank: int
    rope_dim: int
    query_heads: int
    head_key_dim: int
    head_value_dim: int

    kind: ClassVar[str] = "latent_attention"

    def stored(self, tokens: int, fmt: Format) -> Stored:
        """The compressed vector with its rotary key, as one row."""
        return fmt.keys(tokens, 1, self.rank + self.rope_dim)

    def per_token(self, fmt: Format) -> int | None:
        """The slope."""
        return mean_slope(self, fmt) if fmt.linear else None

    @property
    def heads(self) -> int | None:
        """One: every query head reads the same vector."""
        return 1

    @property
    def key_width(self) -> int | None:
        """The compressed vector and the rotary key."""
        return self.rank + self.rope_dim

    @property
    def value_width(self) -> int | None:
        """Values are read out of the compressed vector."""
        return 0

    def multi_head(self) -> Layer:
        """A key and a value for each head, as if they were not compressed."""
        return FullAttention(
            kv_heads=self.query_heads,
            key_dim=self.head_key_dim,
            value_dim=self.head_value_dim,
            query_heads=self.query_heads,
        )

    def on_rank(self, tp: int) -> Layer:
        """Every rank keeps the whole vector."""
        return replace(self, query_heads=max(1, ceil_div(self.query_heads, tp)))

    def formula(self, fmt: Format) -> str:
        """Rank and rotary width."""
        return (
            f"({self.rank} latent + {self.rope_dim} rotary) elements in {fmt.name}"
            f" = {mean_slope(self, fmt):,} B a token"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedLatentAttention(LatentAttention):
    """Latent attention with an indexer of its own: one more key of ``index_dim`` a token.

    ``index_bytes`` is the size of its elements where the model fixes it; 0 follows the format.
    """

    index_dim: int
    index_bytes: int = 0

    kind: ClassVar[str] = "indexed_latent_attention"

    def stored(self, tokens: int, fmt: Format) -> Stored:
        """The latent row and the indexer's key."""
        row = fmt.keys(tokens, 1, self.rank + self.rope_dim)
        return row + index_keys(tokens, self.index_dim, self.index_bytes, fmt)

    def formula(self, fmt: Format) -> str:
        """Rank, rotary width and indexer."""
        return (
            f"({self.rank} latent + {self.rope_dim} rotary + {self.index_dim} indexer) elements "
            f"in {fmt.name} = {mean_slope(self, fmt):,} B a token"
        )


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


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossAttention(Layer):
    """Keys and values over an encoder's tokens, computed once and kept."""

    kv_heads: int
    key_dim: int
    value_dim: int
    encoder_tokens: int

    kind: ClassVar[str] = "cross_attention"

    def stored(self, tokens: int, fmt: Format) -> Stored:
        """The encoder's keys and values, whatever the decoder's length."""
        return fmt.keys(self.encoder_tokens, self.kv_heads, self.key_dim) + fmt.values(
            self.encoder_tokens, self.kv_heads, self.value_dim
        )

    @property
    def heads(self) -> int | None:
        """Heads over the encoder."""
        return self.kv_heads

    @property
    def key_width(self) -> int | None:
        """Elements of one head's key."""
        return self.key_dim

    @property
    def value_width(self) -> int | None:
        """Elements of one head's value."""
        return self.value_dim

    def on_rank(self, tp: int) -> Layer:
        """Heads are split."""
        return replace(self, kv_heads=max(1, ceil_div(self.kv_heads, tp)))

    def formula(self, fmt: Format) -> str:
        """Encoder tokens × heads × widths."""
        return (
            f"{self.encoder_tokens:,} encoder tokens × {self.kv_heads} heads × "
            f"({self.key_dim} + {self.value_dim}) in {fmt.name} = {self.fixed_bytes(fmt):,} B, once"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressedAttention(Layer):
    """DeepSeek V4: a window of whole tokens and one entry for each full group of ``ratio`` tokens.

    Keys and values are one tensor of ``dim`` elements. Two forms (transformers 5.24.0,
    models/deepseek_v4/modeling_deepseek_v4.py, DeepseekV4CSACache and DeepseekV4HCACache):

    * with ``index_dim`` (CSA) a group also reads the one before it: the unfinished group waits as
      twice as wide entries, and the last full group stays beside the entries with a float32 gate;
      compressor and indexer keep the same things at their own widths;
    * without (HCA) only the tokens of the unfinished group wait, with their gates.

    Where groups do not overlap (V4.1), an indexer's key is made of each entry, and what waits is
    that of the second form.
    """

    dim: int
    size: int
    ratio: int
    index_dim: int = 0
    overlaps: bool = True

    kind: ClassVar[str] = "compressed_attention"

    def stored(self, tokens: int, fmt: Format) -> Stored:
        """Window, compressed entries, and the buffers of the unfinished group."""
        total = fmt.keys(min(tokens, self.size - 1), 1, self.dim)
        groups, waiting = divmod(tokens, self.ratio)
        if not self.index_dim or not self.overlaps:
            total += Stored(waiting * self.dim * 4) + self._entries(groups, fmt, self.dim)
            return total + self._entries(groups, fmt, self.index_dim)
        for width in (self.dim, self.index_dim):
            total += self._entries(groups, fmt, width)
            total += Stored(waiting * 2 * width * 4)
            if groups:
                total += Stored(self.ratio * width * (2 + FLOAT32_BYTES))
        return total

    @staticmethod
    def _entries(groups: int, fmt: Format, width: int) -> Stored:
        return fmt.keys(groups, 1, width) if width else NOTHING

    def per_token(self, fmt: Format) -> int | None:
        """None: entries come in steps of ``ratio`` tokens."""
        return None

    @property
    def window(self) -> int | None:
        """The window of whole tokens."""
        return self.size

    @property
    def period(self) -> int:
        """The compression ratio."""
        return self.ratio

    @property
    def heads(self) -> int | None:
        """One: keys and values are shared by every query head."""
        return 1

    @property
    def key_width(self) -> int | None:
        """Elements of the one tensor."""
        return self.dim

    @property
    def value_width(self) -> int | None:
        """Values are the keys."""
        return 0

    def formula(self, fmt: Format) -> str:
        """Window, entries and indexer."""
        entry = f"{self.dim}" + (f" + {self.index_dim} indexer" if self.index_dim else "")
        return (
            f"the last {self.size - 1} tokens × {self.dim} elements, one entry of {entry} elements "
            f"each {self.ratio} tokens in {fmt.name}, and the buffers of the unfinished group"
        )
