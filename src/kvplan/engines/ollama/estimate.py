"""What Ollama expected of a model before llama.cpp loaded it, and the layers that it placed by it.

fs/ggml/ggml.go, GraphSize, and llm/memory.go, EstimateGPULayers (0.9.0). c is the context of all
slots, b the batch, h heads, E the width, V the vocabulary. Its bytes of a quantised cache are 1 and
0.5 an element, not those of the blocks that are stored; latent rows are counted decompressed.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from kvplan.core import weights as w
from kvplan.core.latent import LatentAttention
from kvplan.core.layers import FullAttention
from kvplan.core.model import Model
from kvplan.engines.llamacpp.buffers import Buffers
from kvplan.engines.llamacpp.geometry import Geometry, Kept
from kvplan.engines.ollama.eras import MINIMUM

ELEMENT_BYTES: Final = {"q8_0": 1.0, "q4_0": 0.5}
LLAMA: Final = frozenset({"llama", "llama4", "llama4_text", "mistral", "mixtral"})
GEMMA: Final = frozenset({"gemma", "gemma2", "gemma3", "gemma3_text"})
DEEPSEEK: Final = frozenset({"deepseek2", "deepseek_v2", "deepseek_v3"})
COMMAND_R: Final = frozenset({"command-r", "cohere"})
GEMMA3: Final = frozenset({"gemma3", "gemma3_text"})


class Sizes(NamedTuple):
    """What the graph's size is made of."""

    context: int
    batch: int
    hidden: int
    vocabulary: int
    heads: int
    kv_heads: int
    head: int


class Graph(NamedTuple):
    """Bytes of the graph where all layers are on cards, and where some are not."""

    full: int
    partial: int


class Estimate(NamedTuple):
    """Ollama's expectation: each layer's cache, the graph, and the layers of each card."""

    caches: tuple[int, ...]
    graph: Graph
    layers: tuple[int, ...]
    allocations: tuple[int, ...]
    overflow: int

    @property
    def cache(self) -> int:
        """``memory.required.kv``."""
        return sum(self.caches)

    @property
    def partial(self) -> int:
        """``memory.required.partial``."""
        return sum(self.allocations)

    @property
    def full(self) -> int:
        """``memory.required.full``."""
        return self.partial + self.overflow


def sizes_of(model: Model, context: int, batch: int) -> Sizes:
    """A model's sizes as its metadata has them."""
    heads = kv_heads = head = 0
    for layer, _ in model.layers():
        if isinstance(layer, LatentAttention):
            heads = kv_heads = layer.query_heads
            head = layer.head_key_dim
        elif isinstance(layer, FullAttention) and layer.query_heads >= heads:
            heads, kv_heads, head = layer.query_heads, layer.kv_heads, layer.key_dim
    hidden, vocabulary = model.hidden_size or 0, model.vocab_size or 0
    return Sizes(context, min(batch, context), hidden, vocabulary, heads, kv_heads, head)


def layer_caches(
    geometry: Geometry, model_type: str, sizes: Sizes, slots: int, cache_type: str
) -> tuple[int, ...]:
    """Each layer's cache; a Gemma 3's windows are counted as windows, others' at full length."""
    each = ELEMENT_BYTES.get(cache_type, 2.0)

    def bytes_of(kept: Kept) -> int:
        if kept.state:
            return 4 * (kept.state.r + kept.state.s)
        if not kept.rows:
            return 0
        cells = sizes.context
        if kept.rows.window and model_type in GEMMA3:
            cells = slots * kept.rows.window + sizes.batch
        return int(cells * (kept.rows.k + kept.rows.v) * each)

    by_kind = [bytes_of(kept) for kept in geometry.blocks.kinds]
    return tuple(by_kind[kind] for kind in geometry.blocks.order)


def graph_of(model_type: str, sizes: Sizes, cache: int) -> Graph:
    """The graph by architecture; a share of the cache for those without a formula."""
    c, b, hidden, vocabulary, h, hkv, head = sizes
    logits = 4 * b * (hidden + vocabulary)
    brought = hidden * vocabulary * 105 // 128
    if model_type in LLAMA:
        full = max(4 * b * (1 + 4 * hidden + c * (1 + h)), logits)
        block = 4 * b * (1 + hidden + max(c, hidden)) + hidden * hidden * 9 // 16
        partial = 4 * b * hidden + max(block + 4 * c * (b * h + head * hkv), logits + brought)
    elif model_type in GEMMA:
        full = max(logits, 4 * b * (2 + c + c * h + 2 * hidden + 2 * head * h))
        block = 4 * b * (2 * hidden + 1 + 2 * head * h + c + c * h)
        block += 4 * head * c * 8 + hidden * head * h * 9 // 16
        partial = max(logits + brought, block)
    elif model_type == "qwen2":
        full = max(logits, 4 * b * (1 + 2 * hidden + c + c * h))
        partial = max(logits + brought, 4 * (b * (1 + 2 * hidden + c * (1 + h)) + hidden * (1 + c)))
    elif model_type in COMMAND_R:
        full = max(logits, 4 * b * (2 + 4 * hidden + c * (1 + h)))
        block = 4 * b * (1 + 2 * hidden + c * (1 + h)) + 4 * hidden * c + hidden * hidden * 9 // 16
        partial = max(logits + brought, block)
    elif model_type in DEEPSEEK:
        wide = 4 * b * (3 * hidden + vocabulary)
        full = max(wide, 4 * b * (3 * hidden + 2 + c * (1 + hkv) + 2 * head * hkv))
        block = 4 * b * (2 * hidden + 1 + 2 * head * hkv + c + c * hkv)
        block += 4 * head * c * hkv + hidden * head * hkv * 9 // 16
        partial = max(wide + brought, block)
    else:
        full = partial = h // max(1, hkv) * cache // 6
    return Graph(full, partial)


def expect(
    model: Model, geometry: Geometry, buffers: Buffers, sizes: Sizes, slots: int, cache_type: str
) -> tuple[tuple[int, ...], Graph]:
    """Caches and graph, before anything is placed."""
    caches = layer_caches(geometry, model.model_type, sizes, slots, cache_type)
    return caches, graph_of(model.model_type, sizes, sum(caches))


def assign(
    caches: tuple[int, ...],
    graph: Graph,
    buffers: Buffers,
    free: tuple[int, ...],
    *,
    asked: int | None,
    overhead: int,
    metal: bool,
) -> Estimate:
    """Layers from the last to the first, dealt round the cards that have room for one more.

    Each card first pays for the minimum and one layer as a reserve; the graph is the larger of the
    two while layers are placed. Several cards count the partial graph for both, Metal the full.
    """
    if metal:
        graph = Graph(graph.full, graph.full)
    elif len(free) > 1:
        graph = Graph(graph.partial, graph.partial)
    blocks, output = buffers.parts.blocks, buffers.output or buffers.parts.embedding
    worst, reserve = max(graph), (blocks[0] if blocks else 0) + (caches[0] if caches else 0)
    minimum = 0 if metal else MINIMUM
    room = [card for card, has in enumerate(free)
            if has >= overhead + worst + minimum + 2 * reserve]  # fmt: skip
    held = [minimum + reserve if card in room else 0 for card in range(len(free))]
    counts = [0] * len(free)
    overflow = placed = 0
    for il in reversed(range(len(blocks))):
        size = blocks[il] + caches[il]
        if asked is not None and placed >= asked:
            overflow += size
            continue
        while room:
            card = room[il % len(room)]
            if free[card] > overhead + held[card] + worst + size:
                held[card] += size
                counts[card] += 1
                placed += 1
                break
            room.remove(card)
        if not room:
            overflow += size
    whole = placed >= len(blocks)
    if asked is None or placed < asked:
        last = [room[placed % len(room)]] if room else []
        for card in last:
            if free[card] > overhead + held[card] + worst + output:
                held[card] += output
                counts[card] += 1
                placed += 1
    if placed < len(blocks) + 1:
        whole = False
        overflow += output
    for card, count in enumerate(counts):
        held[card] += (graph.full if whole else graph.partial) if count else 0
    return Estimate(caches, graph, tuple(counts), tuple(held), overflow)


def towers(model: Model) -> bool:
    """Whether the model has an encoder, whose context is at least 2,048."""
    tensors = model.weights.tensors if model.weights else ()
    return any(weight.role == w.TOWER for weight in tensors)
