"""SGLang's series (``--enable-metrics``).

0.4 to 0.5.23: sglang/srt/metrics/collector.py, later observability/metrics_collector.py.
``num_retracted_reqs`` is a gauge of the last step, the counter is ``num_retracted_requests_total``.
``cached_tokens_total`` has a series a tier and, in some versions, a ``total`` that is no tier.
"""

from __future__ import annotations

from kvplan.logs.metrics.series import Exporter, Join, PoolLabels, Series

SGLANG = Exporter(
    engine="sglang",
    prefix="sglang_",
    pool=PoolLabels(
        name="sglang_cache_config_info",
        figures={"page_size": ("block_size", "tokens"), "num_pages": ("num_gpu_blocks", "blocks")},
    ),
    series=(
        Series(figure="kv_usage", names=("sglang_token_usage",), unit="share", join=Join.FULLEST),
        Series(
            figure="window_usage",
            names=("sglang_swa_token_usage",),
            unit="share",
            join=Join.FULLEST,
        ),
        Series(
            figure="state_usage", names=("sglang_mamba_usage",), unit="share", join=Join.FULLEST
        ),
        Series(figure="used_tokens", names=("sglang_num_used_tokens",), unit="tokens"),
        Series(
            figure="kv_tokens",
            names=("sglang_max_total_num_tokens",),
            unit="tokens",
            join=Join.LEAST,
        ),
        Series(figure="block_size", names=("sglang_page_size",), unit="tokens", join=Join.LEAST),
        Series(
            figure="max_model_len", names=("sglang_context_len",), unit="tokens", join=Join.LEAST
        ),
        Series(figure="running_requests", names=("sglang_num_running_reqs",), unit="requests"),
        Series(figure="waiting_requests", names=("sglang_num_queue_reqs",), unit="requests"),
        Series(
            figure="preemptions",
            names=("sglang_num_retracted_requests",),
            unit="requests",
            counter=True,
        ),
        Series(
            figure="prefix_queried_tokens",
            names=("sglang_prompt_tokens",),
            unit="tokens",
            counter=True,
        ),
        Series(
            figure="prefix_hit_tokens",
            names=("sglang_cached_tokens",),
            unit="tokens",
            counter=True,
            without={"cache_source": ("total",)},
        ),
        Series(
            figure="hit_rate_gauge",
            names=("sglang_cache_hit_rate",),
            unit="share",
            join=Join.LEAST,
        ),
        Series(
            figure="prompt_tokens", names=("sglang_prompt_tokens",), unit="tokens", counter=True
        ),
        Series(
            figure="generation_tokens",
            names=("sglang_generation_tokens",),
            unit="tokens",
            counter=True,
        ),
        Series(
            figure="evicted_tokens", names=("sglang_evicted_tokens",), unit="tokens", counter=True
        ),
        Series(
            figure="finished_requests",
            names=("sglang_num_requests",),
            unit="requests",
            counter=True,
        ),
    ),
)
