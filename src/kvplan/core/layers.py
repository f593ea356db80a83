"""What a layer keeps of the tokens it has seen: one frozen type a kind.

Every kind answers the same questions, for one sequence in one layer:

    stored(tokens, fmt)      elements and scales, in bytes, after ``tokens`` tokens
    fixed_bytes              the part that is there from the first token and never grows
    per_token(fmt)           bytes that one more token adds, where that is one figure, else None
    multi_head()             the same layer with a key and a value for every query head
    on_rank(tp)              its share under tensor parallelism

Here are the layers that keep keys and values; beside it ``latent``, ``compressed``, ``states`` and
``cross`` have the others. The numbers are what transformers keeps (the *raw* size); an engine's
pages are rounded from the same shapes in ``kvplan.engines``.
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
class HeadedLayer(Layer):
    """A layer with a key and a value for each of its KV heads."""

    kv_heads: int
    key_dim: int
    value_dim: int

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


@dataclass(frozen=True, slots=True, kw_only=True)
class FullAttention(HeadedLayer):
    """Keys and values of every token: ``kv_heads × (key_dim + value_dim)`` elements a token.

    ``index_dim`` is the width of an indexer's key beside them (sparse attention over a full cache,
    one shared key a token); ``index_bytes`` fixes its element size where the model does. ``copies``
    is how often transformers keeps each head (Falcon's are broadcast first); an engine keeps one.
    """

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
