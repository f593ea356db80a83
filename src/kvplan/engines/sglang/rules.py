"""What changed in which release of SGLang, as one record a release.

Read in 0.4.3.post2, 0.4.6, 0.4.9, 0.5.2, 0.5.4, 0.5.6, 0.5.9, 0.5.12, 0.5.15, 0.5.18 and 0.5.23; a
change is dated at the first of them that has it. Files: model_executor/model_runner.py (to 0.5.6),
model_runner_kv_cache_mixin.py (0.5.9 to 0.5.15), pool_configurator.py (from 0.5.12),
mem_cache/kv_cache_configurator.py (from 0.5.18), configs/model_config.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from kvplan.core.version import Version

OLDEST, NEWEST = "0.4.3", "0.5.23"

# Model types whose windows have a pool of their own (is_hybrid_swa_model); all others keep full
# length in every layer.
WINDOW_POOLS = (
    ("0.5.9", "llama4 llama4_text gpt_oss mimo_v2 mimo_v2_flash step3p5"),
    ("0.5.12", "gemma4 gemma4_text laguna deepseek_v4 deepseek_ref"),
    ("0.5.15", "gemma4_unified gemma4_unified_text step3p7"),
    ("0.5.18", "mellum inkling inkling_text muse_glimmer muse_glimmer_text"),
    ("0.5.23", "deepseek_v41 granite_swa granitemoe_swa diffusion_gemma embedding_gemma2"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The decisions of one release."""

    widths_apart: bool  # the budget counts K and V by their own widths, not twice K's
    index_counted: bool  # an indexer's keys are in the budget and in the printed size
    index_elided: bool  # a layer that reuses another's choice keeps no indexer keys
    npu_index_counted: bool  # the budget knows that an NPU keeps them in 16 bits
    npu_all_layers: bool  # an NPU keeps keys and values for recurrent layers too
    window_types: frozenset[str]
    states_times_drafts: bool  # every slot has room for the draft tokens' states
    padding_slot_counted: bool  # the budget knows the pool's one slot more
    extra_buffer: bool  # states of shared prefixes are double-buffered by default
    draft_counted: bool  # an EAGLE or standalone draft is in the budget
    dflash_counted: bool
    dflash_beside_windows: bool  # also where windows have their own pool
    scales_printed: bool  # the printed size of a 4-bit cache has its scales
    half_of_tokens: bool  # two tokens a running request at least, where no cap is given
    given_requests: str  # what bounds --max-running-requests: nothing, estimate, half
    host_page_more: bool  # HiCache's pools are rounded up and have a page more
    host_may_be_smaller: bool  # than the card's
    multimodal_reserve: int  # bytes kept for what a multimodal model allocates after sizing

    def pools_windows(self, model_type: str) -> bool:
        """Whether a model's windows have their own pool."""
        return model_type in self.window_types

    def counts_draft(self, speculative: str, *, beside_windows: bool) -> bool:
        """Whether a draft's cache is in the budget, or has to fit beside it."""
        if speculative.startswith("DFLASH"):
            return self.dflash_beside_windows if beside_windows else self.dflash_counted
        return self.draft_counted


@lru_cache(maxsize=64)
def rules_of(version: Version) -> Rules:
    """The rules of a release."""

    def since(text: str) -> bool:
        return version >= Version.parse(text)

    pooled = [name for first, names in WINDOW_POOLS if since(first) for name in names.split()]
    return Rules(
        widths_apart=since("0.5.9"),
        index_counted=since("0.5.4"),
        index_elided=since("0.5.18"),
        npu_index_counted=since("0.5.23"),
        npu_all_layers=not since("0.5.12"),
        window_types=frozenset(pooled),
        states_times_drafts=not since("0.5.9"),
        padding_slot_counted=since("0.5.18"),
        extra_buffer=since("0.5.15"),
        draft_counted=since("0.5.15"),
        dflash_counted=since("0.5.12"),
        dflash_beside_windows=since("0.5.23"),
        scales_printed=since("0.5.18"),
        half_of_tokens=since("0.4.6"),
        given_requests="half" if since("0.5.15") else "estimate" if since("0.5.12") else "nothing",
        host_page_more=since("0.5.6"),
        host_may_be_smaller=since("0.5.23"),
        multimodal_reserve=(100 << 20) if since("0.5.18") else 0,
    )
