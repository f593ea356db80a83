"""What llama.cpp keeps of each block, in elements: rows of K and V a cell, states a sequence.

llama.cpp's own view differs from transformers': a convolution keeps one column less and all states
are float32 (src/llama-hparams.cpp, n_embd_r and n_embd_s, b11434); windows that its loader does not
use are full attention; a block without heads still counts as a layer of its cache.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple

from kvplan.core.compressed import CompressedAttention
from kvplan.core.latent import IndexedLatentAttention, LatentAttention
from kvplan.core.latent_windows import SharedLatentIndex, SlidingLatentAttention
from kvplan.core.layers import FullAttention, Layer, SharedCache
from kvplan.core.model import Block
from kvplan.core.stack import Stack
from kvplan.core.states import RecurrentState

# Types whose windows the loader reads past or switches off (src/models/*.cpp: no swa_type, or NONE
# as in phi3.cpp). A GGUF's reader has done so already.
WINDOWS_UNUSED: Final = frozenset({
    "mistral", "mixtral", "ministral", "qwen2", "qwen2_moe", "qwen2_vl", "qwen2_vl_text",
    "qwen2_5_vl", "qwen2_5_vl_text", "qwen3", "qwen3_moe", "phi3", "phimoe", "phi4_multimodal",
    "starcoder2", "persimmon", "minimax", "glm4_moe", "voxtral", "pixtral",
})  # fmt: skip
# Their loaders count the token itself outside the window.
WINDOW_WITHOUT_ITSELF: Final = frozenset({"mimo_v2", "mimo_v2_flash", "mimo2"})


class Rows(NamedTuple):
    """Elements of one cell of one layer; ``latent`` is the width that heads share, 0 without."""

    k: int
    v: int
    window: int = 0
    heads: int = 1
    indexer: int = 0
    latent: int = 0
    rope: int = 0


class State(NamedTuple):
    """Float32 elements of one sequence in one layer: convolutions and shifts, and the states."""

    r: int
    s: int


class Compressed(NamedTuple):
    """DeepSeek V4's layer: one row a token within a window, one a group of ``ratio`` tokens."""

    dim: int
    window: int
    ratio: int
    indexer: int


class Kept(NamedTuple):
    """What one block keeps; ``listed`` says whether llama.cpp counts it as a layer of the cache."""

    rows: Rows | None = None
    state: State | None = None
    compressed: Compressed | None = None
    listed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Geometry:
    """All blocks in order, and what they have in common.

    ``last`` is the attention that a multi-token-prediction block repeats: the last without window.
    """

    blocks: Stack[Kept]
    widest_v: int = field(default=0)
    windowed: bool = False
    recurrent: bool = False
    compressed: bool = False
    last: Rows | None = None

    @property
    def layers(self) -> int:
        """Blocks."""
        return len(self.blocks)


@lru_cache(maxsize=512)
def geometry_of(blocks: Stack[Block], model_type: str) -> Geometry:
    """llama.cpp's view of a model's blocks."""
    found = tuple(_kept(block, model_type) for block in blocks.kinds)
    recurrent = any(kept.state for kept in found)
    if recurrent:
        found = tuple(kept if kept.rows else kept._replace(listed=False) for kept in found)
    compressed = any(kept.compressed for kept in found)
    if compressed:  # DeepSeek V4 keeps no V, also in its layers with a window alone
        found = tuple(_without_v(kept) for kept in found)
    rows = [kept.rows for kept in found if kept.rows]
    return Geometry(
        blocks=Stack(found, blocks.order),
        widest_v=max((row.v for row in rows), default=0),
        windowed=any(row.window for row in rows),
        recurrent=recurrent,
        compressed=compressed,
        last=next((row for row in reversed(rows) if not row.window), None),
    )


def _without_v(kept: Kept) -> Kept:
    return kept._replace(rows=kept.rows._replace(v=0)) if kept.rows else kept


def _kept(block: Block, model_type: str) -> Kept:
    kept = Kept(listed=True)
    for layer in block:
        kept = _with(kept, layer, model_type)
    return kept


def _with(kept: Kept, layer: Layer, model_type: str) -> Kept:
    if isinstance(layer, RecurrentState):
        return kept._replace(state=_state(layer))
    if isinstance(layer, CompressedAttention):
        shape = Compressed(layer.dim, layer.size, layer.ratio, layer.index_dim)
        return kept._replace(compressed=shape, listed=False)
    if isinstance(layer, SharedLatentIndex):
        return kept._replace(rows=Rows(0, 0, indexer=layer.index_dim))
    if isinstance(layer, SharedCache):
        return kept._replace(listed=False)
    if isinstance(layer, LatentAttention):
        return kept._replace(rows=_latent(layer))
    if isinstance(layer, FullAttention):
        k, v = layer.kv_heads * layer.key_dim, layer.kv_heads * layer.value_dim
        # An indexer beside keys and values has one head, and a V of its own (llama-kv-cache-msa).
        return kept._replace(
            rows=Rows(k, v, _window(layer, model_type), layer.kv_heads, layer.index_dim)
        )
    return kept._replace(listed=not layer.note)


def _window(layer: Layer, model_type: str) -> int:
    size = layer.window or 0
    if model_type in WINDOWS_UNUSED:
        return 0
    return size - 1 if size and model_type in WINDOW_WITHOUT_ITSELF else size


def _latent(layer: LatentAttention) -> Rows:
    """Keys and values of every head; the row that they share is beside them."""
    window = layer.size if isinstance(layer, SlidingLatentAttention) else 0
    index = layer.index_dim if isinstance(layer, IndexedLatentAttention) else 0
    return Rows(
        layer.query_heads * layer.head_key_dim,
        layer.query_heads * layer.head_value_dim,
        window,
        layer.query_heads,
        index,
        latent=layer.rank,
        rope=layer.rope_dim,
    )


def _state(layer: RecurrentState) -> State:
    r = s = 0
    for tensor in layer.tensors:
        elements = tensor.num_bytes // tensor.element_bytes
        if "conv" in tensor.name:
            kernel = tensor.shape[-1]
            r += elements // kernel * (kernel - 1)
        elif "shift" in tensor.name:
            r += elements
        else:
            s += elements
    return State(r, s)
