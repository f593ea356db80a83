"""A model's layers to specs: each layer's pages on one rank, and which stage it is on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kvplan.core.compressed import CompressedAttention
from kvplan.core.cross import CrossAttention
from kvplan.core.latent import IndexedLatentAttention, LatentAttention
from kvplan.core.latent_windows import SharedLatentIndex, SlidingLatentAttention
from kvplan.core.layers import ChunkedAttention, FullAttention, Layer, SlidingWindow
from kvplan.core.model import Block, Model
from kvplan.core.states import RecurrentState
from kvplan.engines.vllm import compressed
from kvplan.engines.vllm.blocks import hybrid_block, kernel_of, latent_hybrid
from kvplan.engines.vllm.cells import (
    TURBOQUANT,
    head_bytes,
    index_bytes,
    latent_bytes,
)
from kvplan.engines.vllm.draft import Draft
from kvplan.engines.vllm.groups import Counted, Stages
from kvplan.engines.vllm.layout import stage_of_blocks
from kvplan.engines.vllm.rules import Rules
from kvplan.engines.vllm.settings import Settings, has_attention, has_states
from kvplan.engines.vllm.specs import (
    ChunkSpec,
    CrossSpec,
    FullSpec,
    LatentSpec,
    LatentWindowSpec,
    RingSpec,
    Spec,
    StateSpec,
    WindowSpec,
)
from kvplan.engines.vllm.states import is_state_space, state_bytes

BOUNDARY = 2  # layers at each end that TurboQuant leaves in the model's type
INDEX_DTYPE_BYTES = 2  # an indexer's keys beside attention with heads stay in 16 bits


@dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    """The specs of all layers with the stage of each, in order of first appearance.

    ``block_size`` is the attention's.
    """

    layers: Counted
    block_size: int


class Pager:
    """Builds the specs of one model under one set of settings."""

    def __init__(self, model: Model, settings: Settings, rules: Rules) -> None:
        self.model, self.settings, self.rules = model, settings, rules
        self.tp = settings.layout.tp
        self.dtype = settings.kv_dtype
        self.page = 0
        self.compressed = any(
            isinstance(layer, CompressedAttention)
            for block in model.blocks.kinds
            for layer in block
        )
        self.sparse = any(
            isinstance(layer, IndexedLatentAttention)
            for block in model.blocks.kinds
            for layer in block
        )
        self.block = self._block()

    # Sizes.

    def _block(self) -> int:
        """Tokens of an attention block; sets the page that states are padded to."""
        model, settings = self.model, self.settings
        if not has_states(model):
            return kernel_of(model, settings, self.rules).block
        states = [
            state_bytes(layer, model, settings, self.rules)
            for block in model.blocks.kinds
            for layer in block
            if isinstance(layer, RecurrentState)
        ]
        if not has_attention(model):
            self.page = max(states)
            return settings.max_len
        kernel = kernel_of(model, settings, self.rules)
        token = self._hybrid_token()
        if self._latent_layers():
            kernel = latent_hybrid(kernel, self.rules)
        chunk = model.traits.state_chunk
        block = hybrid_block(kernel, token, max(states), settings, self.rules, chunk)
        self.page = block * token
        return block

    def _latent_layers(self) -> list[LatentAttention]:
        return [
            layer
            for block in self.model.blocks.kinds
            for layer in block
            if isinstance(layer, LatentAttention)
        ]

    def _hybrid_token(self) -> int:
        """Bytes of a token in the first layer of attention."""
        for block in self.model.blocks.kinds:
            for layer in block:
                if isinstance(layer, FullAttention):
                    return self.token(layer, self.dtype)
                if isinstance(layer, LatentAttention):
                    return self.row(layer)
        return 1

    @property
    def lookahead(self) -> int:
        """Tokens that a window keeps for drafts."""
        draft = self.settings.draft
        return draft.lookahead if draft and self.rules.draft_lookahead else 0

    def heads(self, kv_heads: int) -> int:
        """KV heads of a rank: with fewer than ranks each keeps one."""
        return max(1, kv_heads // self.tp)

    def token(self, layer: FullAttention | CrossAttention, dtype: str) -> int:
        """Bytes of one token's keys and values on a rank."""
        each = head_bytes(dtype, layer.key_dim, layer.value_dim, self.settings.model_bytes)
        return self.heads(layer.kv_heads) * each

    def row(self, layer: LatentAttention) -> int:
        """Bytes of one token's latent row."""
        dtype = self.dtype
        if self.sparse and dtype.startswith("fp8"):
            dtype = "fp8_ds_mla"
        return latent_bytes(dtype, layer.rank + layer.rope_dim, self.settings.model_bytes)

    # Layers.

    def specs(self, layer: Layer, dtype: str) -> Iterator[Spec]:
        """The specs of one layer."""
        if self.compressed:
            yield from compressed.specs(layer, self.dtype)
        elif isinstance(layer, FullAttention):
            yield from self.attention(layer, dtype)
        elif isinstance(layer, LatentAttention):
            yield from self.latent(layer)
        elif isinstance(layer, RecurrentState):
            if self.rules.states_paged:
                yield self.state(layer)
        elif isinstance(layer, CrossAttention):
            yield self.cross(layer)
        elif isinstance(layer, SharedLatentIndex):
            yield self.index(layer.index_dim)

    def attention(self, layer: FullAttention, dtype: str) -> Iterator[Spec]:
        """Attention with heads, and its indexer's keys."""
        token = self.token(layer, dtype)
        shape = (self.heads(layer.kv_heads), layer.key_dim, layer.value_dim, dtype)
        sizes = {"block_size": self.block, "page_bytes": self.block * token}
        if isinstance(layer, ChunkedAttention):
            yield ChunkSpec(**sizes, shape=shape, size=layer.size)
        elif isinstance(layer, SlidingWindow):
            yield WindowSpec(**sizes, shape=shape, size=layer.size, extra=self.lookahead)
        else:
            yield FullSpec(**sizes, shape=shape)
        if layer.index_dim:
            page = self.block * layer.index_dim * INDEX_DTYPE_BYTES
            yield LatentSpec(block_size=self.block, page_bytes=page, shape=("index",))

    def latent(self, layer: LatentAttention) -> Iterator[Spec]:
        """Latent rows, and an indexer's keys."""
        if isinstance(layer, IndexedLatentAttention):
            yield self.index(self.model.traits.index_head_dim or layer.index_dim)
            if self.model.traits.index_pool > 1:
                yield self.ring()
        shape = ("latent", layer.rank + layer.rope_dim, self.dtype)
        sizes = {"block_size": self.block, "page_bytes": self.block * self.row(layer)}
        if isinstance(layer, SlidingLatentAttention):
            yield LatentWindowSpec(**sizes, shape=shape, size=layer.size)
        else:
            yield LatentSpec(**sizes, shape=shape)

    def index(self, dim: int) -> Spec:
        """An indexer's keys, one for each ``index_pool`` tokens."""
        rows = self.block // max(1, self.model.traits.index_pool)
        page = rows * index_bytes(dim)
        return LatentSpec(block_size=self.block, page_bytes=page, shape=("index",))

    def ring(self) -> Spec:
        """The keys and gates of the open pool, and of drafts (Glm5NextTailCache)."""
        pool, dim = self.model.traits.index_pool, self.model.traits.index_head_dim
        pools = -(-(pool + self.settings.draft_tokens) // pool)
        slots = pool << (pools - 1).bit_length()
        page = slots * 2 * dim * INDEX_DTYPE_BYTES
        return RingSpec(block_size=slots, page_bytes=page, shape=("ring",))

    def state(self, layer: RecurrentState) -> Spec:
        """A state, padded to the attention's page."""
        settings, rules = self.settings, self.rules
        own = state_bytes(layer, self.model, settings, rules)
        mode = settings.mamba_mode
        drafts = settings.draft_tokens
        if mode == "all" and not rules.all_mode_drafts:
            drafts = 0
        return StateSpec(
            block_size=settings.max_len if mode == "none" else self.block,
            page_bytes=max(own, self.page),
            shape=tuple(tensor.name for tensor in layer.tensors),
            mode=mode,
            drafts=drafts,
            checkpoints=int(rules.checkpoint_block and is_state_space(layer)),
        )

    def cross(self, layer: CrossAttention) -> Spec:
        """Keys and values over the encoder."""
        shape = (self.heads(layer.kv_heads), layer.key_dim, layer.value_dim, self.dtype)
        page = self.block * self.token(layer, self.dtype)
        return CrossSpec(block_size=self.block, page_bytes=page, shape=shape)

    # Drafts.

    def drafted(self, found: Counted) -> Counted:
        """A draft's layers, on the last stage: of their own shape, else of the target's."""
        draft = self.settings.draft
        if draft is None or not draft.layers:
            return ()
        spec = self._own_shape(draft) if draft.has_own_shape else self._target_shape(found)
        last = self.settings.layout.pp - 1
        return () if spec is None else ((spec, (last,) * draft.layers),)

    def _own_shape(self, draft: Draft) -> Spec:
        heads, dim = self.heads(draft.kv_heads), draft.head_dim
        each = head_bytes(self.dtype, dim, dim, self.settings.model_bytes)
        shape = (heads, dim, dim, self.dtype)
        return FullSpec(block_size=self.block, page_bytes=self.block * heads * each, shape=shape)

    def _target_shape(self, found: Counted) -> Spec | None:
        """The target's last full attention; in DeepSeek V4 its window."""
        wanted = LatentWindowSpec if self.compressed else FullSpec
        specs = [spec for spec, _ in found if isinstance(spec, wanted)]
        if not specs:
            return None
        return specs[0] if self.compressed else specs[-1]


def pages_of(model: Model, settings: Settings, rules: Rules) -> Pages:
    """Every spec of the ranks of one replica."""
    pager = Pager(model, settings, rules)
    kept = _kept_places(model, settings)
    stage = stage_of_blocks(len(model.blocks), settings.layout.pp)
    found: list[tuple[Spec, Stages]] = []
    for block, dtype, stages in _runs(model, pager.dtype, kept, stage):
        for layer in block:
            found += [(spec, stages) for spec in pager.specs(layer, dtype)]
    found += pager.drafted(tuple(found))
    return Pages(layers=tuple(found), block_size=pager.block)


def _runs(
    model: Model, dtype: str, kept: frozenset[int], stage: Sequence[int]
) -> Iterator[tuple[Block, str, Stages]]:
    """Each distinct block with the type of its cache and the stages of its places."""
    order = model.blocks.order
    for kind, block in enumerate(model.blocks.kinds):
        places = [place for place, of in enumerate(order) if of == kind]
        plain = tuple([stage[place] for place in places if place in kept]) if kept else ()
        if plain:
            yield block, "auto", plain
        rest = tuple([stage[place] for place in places if place not in kept])
        if rest:
            yield block, dtype, rest


def _kept_places(model: Model, settings: Settings) -> frozenset[int]:
    """Blocks whose cache stays in the model's type: TurboQuant's ends, and those that are named."""
    if settings.kv_dtype == "auto":
        return frozenset()
    blocks = len(model.blocks)
    named = settings.flags.get("--kv-cache-dtype-skip-layers", "")
    kept = {int(word) for word in named.replace(",", " ").split() if word.isdecimal()}
    if settings.kv_dtype in TURBOQUANT and not has_states(model):
        edge = min(BOUNDARY, blocks // 2)
        kept |= {*range(edge), *range(blocks - edge, blocks)}
    return frozenset(kept)
