"""Scrapes in the form of each engine and age, with values of our own."""

VLLM = """
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="Qwen/Qwen3-8B"} 3.0
vllm:num_requests_running{engine="1",model_name="Qwen/Qwen3-8B"} 4.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="Qwen/Qwen3-8B"} 12.0
vllm:num_requests_waiting{engine="1",model_name="Qwen/Qwen3-8B"} 0.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="Qwen/Qwen3-8B"} 0.95
vllm:kv_cache_usage_perc{engine="1",model_name="Qwen/Qwen3-8B"} 0.25
# TYPE vllm:prefix_cache_queries_total counter
vllm:prefix_cache_queries_total{engine="0",model_name="Qwen/Qwen3-8B"} 600.0
vllm:prefix_cache_queries_total{engine="1",model_name="Qwen/Qwen3-8B"} 400.0
vllm:prefix_cache_queries_created{engine="0",model_name="Qwen/Qwen3-8B"} 1.7537953269352946e+09
# TYPE vllm:prefix_cache_hits_total counter
vllm:prefix_cache_hits_total{engine="0",model_name="Qwen/Qwen3-8B"} 400.0
vllm:prefix_cache_hits_total{engine="1",model_name="Qwen/Qwen3-8B"} 30.0
vllm:gpu_prefix_cache_hits_total{engine="0",model_name="Qwen/Qwen3-8B"} 9999.0
vllm:num_preemptions_total{engine="0",model_name="Qwen/Qwen3-8B"} 7.0
vllm:request_success_total{engine="0",finished_reason="stop",model_name="Qwen/Qwen3-8B"} 60.0
vllm:request_success_total{engine="0",finished_reason="length",model_name="Qwen/Qwen3-8B"} 10.0
vllm:prompt_tokens_total{engine="0",model_name="Qwen/Qwen3-8B"} 1000.0
vllm:generation_tokens_total{engine="0",model_name="Qwen/Qwen3-8B"} 2.5e+04
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.001",model_name="Qwen/Qwen3-8B"} 0.0
vllm:cache_config_info{block_size="16",cache_dtype="auto",engine="0",gpu_memory_utilization="0.92",kv_cache_max_concurrency="2.5",kv_cache_memory_bytes="None",kv_cache_size_tokens="102400",num_gpu_blocks="6400"} 1.0
vllm:cache_config_info{block_size="16",cache_dtype="auto",engine="1",gpu_memory_utilization="0.92",kv_cache_max_concurrency="2.4",kv_cache_memory_bytes="None",kv_cache_size_tokens="98304",num_gpu_blocks="6144"} 1.0
"""

VLLM_V0 = """
vllm:num_requests_running{model_name="m"} 1.0
vllm:num_requests_waiting{model_name="m"} 0.0
vllm:num_requests_swapped{model_name="m"} 0.0
vllm:gpu_cache_usage_perc{model_name="m"} 0.5
vllm:gpu_prefix_cache_hit_rate{model_name="m"} 0.8
vllm:num_preemptions_total{model_name="m"} 0.0
vllm:cache_config_info{block_size="16",cache_dtype="auto",num_cpu_blocks="2048",num_gpu_blocks="5691"} 1.0
"""

VLLM_0_8 = """
# HELP vllm:gpu_prefix_cache_queries GPU prefix cache queries, in terms of number of queried blocks.
vllm:num_requests_running{model_name="m"} 1.0
vllm:gpu_cache_usage_perc{model_name="m"} 0.5
vllm:gpu_prefix_cache_queries_total{model_name="m"} 50.0
vllm:gpu_prefix_cache_hits_total{model_name="m"} 20.0
"""

SGLANG = """
sglang:num_running_reqs{engine_type="unified",model_name="m",pp_rank="0",tp_rank="0",dp_rank="0"} 5.0
sglang:num_running_reqs{engine_type="unified",model_name="m",pp_rank="0",tp_rank="1",dp_rank="0"} 5.0
sglang:num_running_reqs{engine_type="unified",model_name="m",pp_rank="0",tp_rank="0",dp_rank="1"} 2.0
sglang:num_queue_reqs{model_name="m",tp_rank="0",dp_rank="0"} 0.0
sglang:token_usage{model_name="m",tp_rank="0",dp_rank="0"} 0.28
sglang:swa_token_usage{model_name="m",tp_rank="0",dp_rank="0"} 0.75
sglang:num_used_tokens{model_name="m",tp_rank="0",dp_rank="0"} 28000.0
sglang:max_total_num_tokens{model_name="m",tp_rank="0",dp_rank="0"} 100000.0
sglang:cache_hit_rate{model_name="m",tp_rank="0",dp_rank="0"} 0.01
sglang:prompt_tokens_total{model_name="m"} 8000.0
sglang:cached_tokens_total{cache_source="device",model_name="m"} 3000.0
sglang:cached_tokens_total{cache_source="host",model_name="m"} 1000.0
sglang:cached_tokens_total{cache_source="total",model_name="m"} 4000.0
sglang:num_retracted_reqs{model_name="m",tp_rank="0",dp_rank="0"} 1.0
sglang:num_retracted_requests_total{model_name="m",tp_rank="0",dp_rank="0"} 48.0
sglang:context_len{model_name="m"} 32768.0
sglang:cache_config_info{model_name="m",num_pages="6250",page_size="16"} 1.0
"""

LLAMACPP = """
# HELP llamacpp:prompt_tokens_total Number of prompt tokens processed.
llamacpp:prompt_tokens_total 600
llamacpp:prompt_tokens_cached_total 400
llamacpp:tokens_predicted_total 18722
llamacpp:n_decode_total 1501
llamacpp:n_tokens_max 980
llamacpp:requests_processing 1
llamacpp:requests_deferred 3
llamacpp:n_busy_slots_per_decode 1.25
"""

LLAMACPP_OLD = """
llamacpp:prompt_tokens_total 600
llamacpp:tokens_predicted_total 18722
llamacpp:kv_cache_usage_ratio 0.63
llamacpp:kv_cache_tokens 1234
llamacpp:requests_processing 2
llamacpp:requests_deferred 0
"""

TGI = """
# TYPE tgi_queue_size gauge
tgi_queue_size 5
tgi_batch_current_size 8
tgi_batch_current_max_tokens 2048
tgi_request_input_length_sum 12800
tgi_request_input_length_count 100
tgi_request_generated_tokens_sum 25600
tgi_request_skipped_tokens_sum 777
tgi_request_success 100
"""

RAY = """
ray_vllm_num_requests_running{model_name="m",WorkerId="a"} 3.0
ray_vllm_kv_cache_usage_perc{model_name="m",WorkerId="a"} 0.4
"""
