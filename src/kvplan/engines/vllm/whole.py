"""V0's pages: every layer that attends keeps all tokens, and a block is one page of each."""

from __future__ import annotations

from kvplan.core.cross import CrossAttention
from kvplan.core.latent import LatentAttention
from kvplan.core.layers import FullAttention, Layer
from kvplan.core.model import Model
from kvplan.engines.vllm.layout import stage_of_blocks
from kvplan.engines.vllm.pages import Pager, Pages
from kvplan.engines.vllm.rules import Rules
from kvplan.engines.vllm.settings import Settings
from kvplan.engines.vllm.specs import FullSpec, Spec

BLOCK = 16


def whole_pages(model: Model, settings: Settings, rules: Rules) -> Pages:
    """One page a block of the model that attends, windows and cross-attention included.

    vLLM 0.8.5, worker/cache_engine.py (CacheEngine.get_cache_block_size): layers of attention ×
    tokens of a block × heads × widths.
    """
    pager = Pager(model, settings, rules)
    block = settings.block_size or BLOCK
    stage = stage_of_blocks(len(model.blocks), settings.layout.pp)
    found = []
    for kind, layers in enumerate(model.blocks.kinds):
        first = next((layer for layer in layers if attends(layer)), None)
        if first is not None:
            places = [stage[place] for place, of in enumerate(model.blocks.order) if of == kind]
            found.append((_page(pager, first, block), tuple(places)))
    return Pages(layers=tuple(found), block_size=block)


def attends(layer: Layer) -> bool:
    """Whether it has keys and values."""
    return isinstance(layer, FullAttention | LatentAttention | CrossAttention)


def _page(pager: Pager, layer: Layer, block: int) -> Spec:
    if isinstance(layer, LatentAttention):
        token = pager.row(layer)
    elif isinstance(layer, FullAttention | CrossAttention):
        token = pager.token(layer, pager.dtype)
    else:
        token = 0
    return FullSpec(block_size=block, page_bytes=block * token, shape=("whole",))
