"""The flags of a start with their defaults: layout, pages, format, limits.

SGLang server_args.py (0.5.12) and arg_groups/ (0.5.23).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from kvplan.core import weights as w
from kvplan.core.compressed import CompressedAttention
from kvplan.core.errors import BadValue
from kvplan.core.latent import IndexedLatentAttention, LatentAttention
from kvplan.core.launch import Launch
from kvplan.core.model import Model
from kvplan.core.units import MIB
from kvplan.engines.base import Asked, Node
from kvplan.engines.chosen import Chosen, check_heads
from kvplan.engines.experts import EPLB
from kvplan.engines.releases import Release
from kvplan.engines.sglang.elements import CACHE_TYPES, FP8, Elements
from kvplan.engines.sglang.fraction import (
    MAX_PREFILL_TOKENS,
    Size,
    default_batch,
    default_chunk,
    default_fraction,
)
from kvplan.engines.sglang.rules import Rules

# Kernels that fix the page size (server_args.py, _handle_attention_backend_compatibility).
PAGES_OF_BACKENDS: Final = {
    "flashmla": 64, "cutlass_mla": 128, "trtllm_mla": 64, "trtllm_mha": 64, "fa4": 128,
    "ascend": 128, "tokenspeed_mla": 64,
}  # fmt: skip
BLACKWELL: Final = ("b200", "b300", "gb200", "gb300", "dgx-station-gb300")
USUAL_DRAFT_TOKENS: Final = 4
HICACHE_RATIO: Final = 2.0  # arg_groups/hicache_hook.py


class HiCache(NamedTuple):
    """The host pools that are asked for: a ratio to the card's, or gigabytes of each rank."""

    ratio: float
    size_gb: float

    @property
    def said(self) -> str:
        """The flag that sizes them."""
        if self.size_gb:
            return f"--hicache-size {self.size_gb:g}"
        return f"--hicache-ratio {self.ratio:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """A start's resolved values; ``launch`` says where each is from."""

    tp: int
    dp: int
    pp: int
    ep: int
    dp_attention: bool
    eplb: bool
    replicas: int
    page: int
    elements: Elements
    context: int
    chunk: int
    prefill: int
    mixes: bool  # prompts and decodes in one step
    overlap: bool  # a step is decided while the one before it runs
    batch: int
    fraction: float
    max_tokens: int | None
    max_requests: int | None
    radix: bool
    window_ratio: float
    pooled_windows: bool
    state_dtype: str
    slots: int | None
    state_ratio: float
    slots_a_request: int
    speculative: str
    draft_tokens: int
    draft_layers: int
    draft_counted: bool
    draft_heads: tuple[int, int] | None  # KV heads and their width, where they are not the target's
    npu: bool
    trtllm_latent: bool
    index_pool: int
    hicache: HiCache | None
    launch: Launch

    @property
    def attention_tp(self) -> int:
        """The ranks that share one cache."""
        return self.tp // self.dp if self.dp_attention else self.tp


def resolve(model: Model, node: Node, asked: Asked, release: Release, rules: Rules) -> Settings:
    """The settings that a start has.

    Raises:
        BadValue: a layout that the model or the cards do not divide.
    """
    choose = Chosen(asked.flags)
    by = f"default of SGLang {release.text}"
    tp, dp, pp, ep, replicas = _layout(model, node, choose)
    dp_attention = bool(choose("--enable-dp-attention"))
    eplb = bool(choose(EPLB))
    npu = choose("--device") == "npu"
    kinds = {type(layer) for layer, _ in model.layers()}
    speculative = str(choose("--speculative-algorithm") or "").upper()
    max_requests = choose("--max-running-requests")
    size = _size(model, node, choose, (tp, dp, pp), speculative, kinds)
    chunk = choose("--chunked-prefill-size", default_chunk(release.version, size), by)
    batch = choose("--cuda-graph-max-bs", default_batch(release.version, size, max_requests), by)
    share = default_fraction(release.version, size, chunk, batch)
    radix = not choose("--disable-radix-cache")
    pooled = rules.pools_windows(model.model_type)
    windowed = any(layer.window for layer, _ in model.layers())
    ratio = 0.1 if CompressedAttention in kinds else 0.8
    return Settings(
        tp=tp,
        dp=dp,
        pp=pp,
        ep=ep,
        dp_attention=dp_attention,
        eplb=eplb,
        replicas=replicas,
        page=_page(model, kinds, choose, npu=npu, radix=radix),
        elements=_elements(model, kinds, choose, node.device.kind),
        context=choose(
            "--context-length",
            model.traits.served_context or model.max_context_tokens or asked.context,
            "the model's",
        ),
        chunk=chunk,
        prefill=choose("--max-prefill-tokens") or MAX_PREFILL_TOKENS,
        mixes=_mixes(choose, speculative, chunk),
        batch=batch,
        fraction=choose("--mem-fraction-static", share, by),
        max_tokens=choose("--max-total-tokens"),
        max_requests=max_requests,
        radix=radix,
        overlap=not choose("--disable-overlap-schedule"),
        window_ratio=choose("--swa-full-tokens-ratio", ratio if pooled else None) or ratio,
        pooled_windows=pooled and not choose("--disable-hybrid-swa-memory"),
        state_dtype=choose("--mamba-ssm-dtype") or model.traits.state_dtype or "float32",
        slots=choose("--max-mamba-cache-size"),
        state_ratio=choose("--mamba-full-memory-ratio") or 0.9,
        slots_a_request=_slots_a_request(choose, rules, radix=radix),
        speculative=speculative,
        draft_tokens=_draft_tokens(choose, speculative),
        draft_layers=_draft_layers(model, choose, speculative),
        draft_counted=rules.counts_draft(speculative, beside_windows=pooled and windowed),
        draft_heads=_draft_heads(choose),
        npu=npu,
        trtllm_latent=choose("--attention-backend") == "trtllm_mla",
        index_pool=model.traits.index_pool,
        hicache=_hicache(choose, by),
        launch=choose.launch,
    )


def _hicache(choose: Chosen, by: str) -> HiCache | None:
    if not choose("--enable-hierarchical-cache"):
        return None
    choose("--hicache-mem-layout")
    size = choose("--hicache-size") or 0.0
    ratio = choose("--hicache-ratio", None if size else HICACHE_RATIO, by) or HICACHE_RATIO
    return HiCache(ratio, size)


def _layout(model: Model, node: Node, choose: Chosen) -> tuple[int, int, int, int, int]:
    """Tensor, data, pipeline and expert ranks, and the copies that the cards have room for."""
    given = choose.given
    dp, pp = choose("--dp-size", 1), choose("--pp-size", 1)
    inside = given.get("--enable-dp-attention", False)
    outer = pp * (1 if inside else dp)
    tp = choose("--tp-size", max(1, node.gpus // outer), "--gpus")
    cards = tp * outer
    if cards > node.gpus > 1:
        raise BadValue(
            f"--tp-size {tp}, --pp-size {pp} and --dp-size {dp} need {cards} cards; "
            f"--gpus says {node.gpus}.",
        )
    if inside and tp % dp:
        raise BadValue(f"--enable-dp-attention needs --tp-size {tp} to be a multiple of {dp}.")
    ranks = tp // dp if inside else tp
    check_heads(model, ranks, "--tp-size")
    return tp, dp, pp, choose("--ep-size", 1), dp * max(1, node.gpus // cards)


def _size(
    model: Model,
    node: Node,
    choose: Chosen,
    layout: tuple[int, int, int],
    speculative: str,
    kinds: set[type],
) -> Size:
    tp, dp, pp = layout
    graphs = not choose("--disable-cuda-graph")
    towers = model.weights.of_role(w.TOWER) if model.weights and model.traits.multimodal else 0
    return Size(
        memory_mib=max(1, node.memory_bytes // MIB),
        tp=tp,
        dp=dp,
        pp=pp,
        dp_attention=bool(choose.given.get("--enable-dp-attention")),
        speculative=speculative,
        latent=any(issubclass(kind, LatentAttention) for kind in kinds),
        multimodal=model.traits.multimodal,
        tower_parameters=towers,
        graphs=graphs,
        prefill_graphs=graphs and not choose("--disable-piecewise-cuda-graph"),
        deepep=choose("--moe-a2a-backend") == "deepep",
    )


def _page(model: Model, kinds: set[type], choose: Chosen, *, npu: bool, radix: bool) -> int:
    """Tokens of a page: the kernels', the model's, or 1."""
    backend = choose.given.get("--attention-backend")
    if CompressedAttention in kinds:
        default = 256
    elif backend in PAGES_OF_BACKENDS:
        default = PAGES_OF_BACKENDS[backend]
    elif npu:
        default = 128
    elif IndexedLatentAttention in kinds:
        default = 64
    else:
        default = 1
    return int(choose("--page-size", default))


def _elements(model: Model, kinds: set[type], choose: Chosen, device: str) -> Elements:
    """The cache's format: ``auto`` is the checkpoint's scheme, or 16 bits.

    A sparse attention's is fp8 on Blackwell (_set_default_nsa_kv_cache_dtype).
    """
    name = choose("--kv-cache-dtype", "auto")
    if name != "auto":
        return CACHE_TYPES[name]
    if IndexedLatentAttention in kinds and device in BLACKWELL:
        return FP8
    return FP8 if model.traits.kv_cache_format == "fp8" else CACHE_TYPES["auto"]


def _slots_a_request(choose: Chosen, rules: Rules, *, radix: bool) -> int:
    """State slots that a running request takes: its own, and those kept for shared prefixes.

    kv_cache_configurator.py (0.5.23), _calculate_mamba_ratio.
    """
    strategy = choose("--mamba-scheduler-strategy")
    overlap = not choose("--disable-overlap-schedule")
    if not radix:
        return 1
    if strategy in (None, "auto"):
        strategy = "extra_buffer" if rules.extra_buffer else "no_buffer"
    if strategy == "extra_buffer":
        return 5 if overlap else 4
    return 4 if strategy == "extra_buffer_lazy" else 3


def _mixes(choose: Chosen, speculative: str, chunk: int) -> bool:
    """Whether --enable-mixed-chunk is in force: not without chunks or beside drafts.

    scheduler.py (is_mixed_chunk); server_args.py, _handle_speculative_decoding and
    _handle_attention_backend_compatibility.
    """
    backend = choose.given.get("--attention-backend")
    if speculative or chunk <= 0 or backend == "dual_chunk_flash_attn":
        return False
    return bool(choose("--enable-mixed-chunk"))


def _draft_tokens(choose: Chosen, speculative: str) -> int:
    given = choose("--speculative-num-draft-tokens")
    if given is None and speculative:
        given = (choose("--speculative-num-steps") or USUAL_DRAFT_TOKENS - 1) + 1
    return given or 0


def _draft_layers(model: Model, choose: Chosen, speculative: str) -> int:
    """Layers of the draft: those in the checkpoint, or one (EAGLE), where none are named."""
    given = choose("--draft-layers")
    if given is not None:
        return int(given)
    if not speculative or speculative == "NGRAM":
        return 0
    return model.traits.draft_layers or 1


def _draft_heads(choose: Chosen) -> tuple[int, int] | None:
    heads, width = choose("--draft-kv-heads"), choose("--draft-head-dim")
    if heads is None and width is None:
        return None
    if heads is None or width is None:
        raise BadValue("A draft's heads need both --draft-kv-heads and --draft-head-dim.")
    return int(heads), int(width)
