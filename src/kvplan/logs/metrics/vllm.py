"""vLLM's series.

0.2 to 0.32: vllm/engine/metrics.py (V0) and vllm/v1/metrics/loggers.py (V1). The labels of
cache_config_info are the fields of CacheConfig; ``kv_cache_size_tokens`` and
``kv_cache_max_concurrency`` are the figures of the log (read in 0.32.0, config/cache.py).
"""

from __future__ import annotations

from kvplan.logs.metrics.series import Exporter, Join, PoolLabels, Series

VLLM = Exporter(
    engine="vllm",
    prefix="vllm_",
    pool=PoolLabels(
        name="vllm_cache_config_info",
        figures={
            "num_gpu_blocks": ("num_gpu_blocks", "blocks"),
            "block_size": ("block_size", "tokens"),
            "kv_cache_size_tokens": ("kv_tokens", "tokens"),
            "kv_cache_max_concurrency": ("max_concurrency", "sequences"),
            "gpu_memory_utilization": ("gpu_memory_utilization", "share"),
            "kv_cache_memory_bytes": ("available_kv_bytes", "bytes"),
            "cache_dtype": ("kv_cache_dtype", ""),
            "enable_prefix_caching": ("enable_prefix_caching", ""),
            "num_gpu_blocks_override": ("num_gpu_blocks_override", "blocks"),
        },
    ),
    series=(
        Series(
            figure="kv_usage",
            names=("vllm_kv_cache_usage_perc", "vllm_gpu_cache_usage_perc"),
            unit="share",
            join=Join.FULLEST,
        ),
        Series(figure="running_requests", names=("vllm_num_requests_running",), unit="requests"),
        Series(figure="waiting_requests", names=("vllm_num_requests_waiting",), unit="requests"),
        Series(
            figure="preemptions", names=("vllm_num_preemptions",), unit="requests", counter=True
        ),
        Series(
            figure="prefix_queried_tokens",
            names=("vllm_prefix_cache_queries", "vllm_gpu_prefix_cache_queries"),
            unit="tokens",
            counter=True,
        ),
        Series(
            figure="prefix_hit_tokens",
            names=("vllm_prefix_cache_hits", "vllm_gpu_prefix_cache_hits"),
            unit="tokens",
            counter=True,
        ),
        Series(
            figure="hit_rate_gauge",
            names=("vllm_gpu_prefix_cache_hit_rate",),
            unit="share",
            join=Join.LEAST,
        ),
        Series(figure="prompt_tokens", names=("vllm_prompt_tokens",), unit="tokens", counter=True),
        Series(
            figure="generation_tokens",
            names=("vllm_generation_tokens",),
            unit="tokens",
            counter=True,
        ),
        Series(
            figure="finished_requests",
            names=("vllm_request_success",),
            unit="requests",
            counter=True,
        ),
    ),
)
