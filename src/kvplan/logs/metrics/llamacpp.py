"""llama.cpp's series (``--metrics``).

tools/server/server-task.cpp (b10519) and server.cpp before (to b6700). ``kv_cache_usage_ratio`` and
``kv_cache_tokens`` went away in mid-2025; ``n_tokens_max`` is the longest sequence so far, not what
is held. ``prompt_tokens_total`` counts what was computed, so that cached tokens are beside it.
"""

from __future__ import annotations

from kvplan.logs.metrics.series import Exporter, Join, Series

LLAMACPP = Exporter(
    engine="llama.cpp",
    prefix="llamacpp_",
    series=(
        Series(
            figure="kv_usage",
            names=("llamacpp_kv_cache_usage_ratio",),
            unit="share",
            join=Join.FULLEST,
        ),
        Series(figure="used_tokens", names=("llamacpp_kv_cache_tokens",), unit="tokens"),
        Series(
            figure="longest_sequence_tokens",
            names=("llamacpp_n_tokens_max",),
            unit="tokens",
            join=Join.FULLEST,
        ),
        Series(figure="running_requests", names=("llamacpp_requests_processing",), unit="requests"),
        Series(figure="waiting_requests", names=("llamacpp_requests_deferred",), unit="requests"),
        Series(
            figure="prefix_computed_tokens",
            names=("llamacpp_prompt_tokens",),
            unit="tokens",
            counter=True,
        ),
        Series(
            figure="prefix_hit_tokens",
            names=("llamacpp_prompt_tokens_cached",),
            unit="tokens",
            counter=True,
        ),
        Series(
            figure="prompt_tokens", names=("llamacpp_prompt_tokens",), unit="tokens", counter=True
        ),
        Series(
            figure="generation_tokens",
            names=("llamacpp_tokens_predicted",),
            unit="tokens",
            counter=True,
        ),
    ),
    missing={
        "preemptions": "llama.cpp never takes a slot's cells away: a full slot ends its request.",
        "kv_usage": "Builds since mid-2025 export no usage of the cache; /slots has it by slot.",
        "hit_rate": "Builds before prompt_tokens_cached_total (about b10500) count no cached "
        "tokens.",
    },
)
