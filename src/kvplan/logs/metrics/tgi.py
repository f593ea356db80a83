"""Text Generation Inference's series.

router/src/infer and backends/v3 (1.x to 3.x); docs/source/reference/metrics.md.
``tgi_request_skipped_tokens`` are tokens of speculation, no hits of the prefix cache.
"""

from __future__ import annotations

from kvplan.logs.metrics.series import Exporter, Series

TGI = Exporter(
    engine="tgi",
    prefix="tgi_",
    series=(
        Series(figure="running_requests", names=("tgi_batch_current_size",), unit="requests"),
        Series(figure="waiting_requests", names=("tgi_queue_size",), unit="requests"),
        Series(figure="reserved_tokens", names=("tgi_batch_current_max_tokens",), unit="tokens"),
        Series(
            figure="prompt_tokens",
            names=("tgi_request_input_length_sum",),
            unit="tokens",
            counter=True,
        ),
        Series(
            figure="generation_tokens",
            names=("tgi_request_generated_tokens_sum",),
            unit="tokens",
            counter=True,
        ),
        Series(
            figure="finished_requests",
            names=("tgi_request_success",),
            unit="requests",
            counter=True,
        ),
    ),
    missing={
        "preemptions": "TGI reserves a request's input and max_new_tokens before it starts, so "
        "that none is taken back.",
        "kv_usage": "TGI exports no usage: tgi_batch_current_max_tokens over the start-up line "
        "`Setting max batch total tokens to N` is the share that is reserved.",
        "hit_rate": "TGI exports no hits of its prefix cache.",
    },
)
