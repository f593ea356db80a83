"""Wordings of vLLM by topic, the oldest first; releases are those in which a wording was printed.

Sizes are binary whatever the unit says: V0 wrote GB for GiB (vllm/worker/model_runner.py 0.6.3).
"""

from __future__ import annotations

from kvplan.logs.facts import UNTOLD
from kvplan.logs.readers.base import Row, row, rows

SETTINGS: tuple[Row, ...] = (
    *rows(
        r"Using max model len <max_model_len:whole>",
        r"Raising max_num_batched_tokens from \d{1,9} to <max_num_batched_tokens:whole>",
        r"max_num_scheduled_tokens is set to <max_num_scheduled_tokens:whole>",
        r"Auto-fit max_model_len: reduced from <asked_max_model_len:whole> to "
        r"<max_model_len:whole>",
        r"Using (?!.{0,60}(?:MoE|sampl|linear|all2all))<attention_backend:words> "
        r"(?:attention )?backend\b",
        r"Using AttentionBackendEnum\.<attention_backend:word> backend",
        r"Setting kv cache block size to <block_size:whole> for",
        r"device_name=<gpu:name>",
        r"FlashInfer resolved query dtypes: .{0,200}?kv_cache_dtype=torch\.<kv_dtype_used:word>",
    ),
    row(
        r"Chunked prefill is enabled with max_num_batched_tokens=<max_num_batched_tokens:whole>",
        enable_chunked_prefill=True,
    ),
    row(r"Using fp8 data type to store kv cache", kv_dtype_used="fp8"),
    row(r"Using DeepSeek's <kv_dtype_used:word> KV cache format"),
    row(r"Using FP8 indexer cache", indexer_dtype_used="fp8"),
)

WEIGHTS = rows(
    r"Loading model weights took <weights_bytes:size>",  # V0 to 0.7
    r"Model loading took <weights_bytes:size>(?: memory)? and <loading_s:number>",  # 0.8 on
)

PROFILE: tuple[Row, ...] = (
    *rows(
        # 0.6.3 to 0.6.4, one field a line for some weeks of December 2024
        r"\btotal_gpu_memory[=: ]{1,3}<total_gpu_bytes:size>",
        r"\bpeak_torch_memory[=: ]{1,3}<peak_torch_bytes:size>",
        r"\bnon_torch_memory[=: ]{1,3}<non_torch_bytes:size>",
        r"\bkv_cache_size=<available_kv_bytes:size>",
        r"\bavailable_kv_cache_memory[=: ]{1,3}<available_kv_bytes:size>",
        r"\bmemory_usage_post_profile[=: ]{1,3}<used_after_profile_bytes:size>",
        r"Memory profiling results: .{0,400}?\bgpu_memory_utilization="
        r"<gpu_memory_utilization:number>",
        # 0.6.5 to the end of V0
        r"total_gpu_memory \(<total_gpu_bytes:size>\) x gpu_memory_utilization "
        r"\(<gpu_memory_utilization:number>\) = <requested_bytes:size>",
        r"model weights take <weights_bytes:size>; non_torch_memory takes "
        r"<non_torch_bytes:size>; PyTorch activation peak memory takes "
        r"<activation_peak_bytes:size>; the rest of the memory reserved for KV Cache is "
        r"<available_kv_bytes:size>",
        # V1 at DEBUG
        r"Total non KV cache memory: <non_kv_bytes:size>; torch peak memory increase: "
        r"<activation_peak_bytes:size>; non-torch forward increase memory: <non_torch_bytes:size>; "
        r"weights memory: <weights_bytes:size>",
        # V1 after the graphs were captured
        r"Free memory on device \(<free_gpu_bytes:of_total>/<total_gpu_bytes:size>\) on startup",
        r"Desired GPU memory utilization is \(<gpu_memory_utilization:number>, "
        r"<requested_bytes:size>\)",
        r"Actual usage is <weights_bytes:size> for weight, <activation_peak_bytes:size> for peak "
        r"activation, <non_torch_bytes:size> for non-torch memory, and <cuda_graph_bytes:size> for",
        # 0.26 on: weights and what torch does not see are one figure
        r"Actual usage is <consumed_bytes:size> for consumed memory[^,]{0,60}, "
        r"<activation_peak_bytes:size> for peak activation, and <cuda_graph_bytes:size> for",
        r"--kv-cache-memory=<kv_memory_to_fit_bytes:bytes>`[^`]{0,40}to fit into requested memory",
        r"or `--kv-cache-memory=<kv_memory_to_fill_bytes:bytes>`[^`]{0,40}to fully utilize",
        r"Current kv cache memory in use is <kv_in_use_bytes:size>",
        r"Available KV cache memory: <available_kv_bytes:size>",
        # In its place where --kv-cache-memory-bytes says the pool (v1/worker/gpu_worker.py 0.11.2)
        r"Initial free memory <free_gpu_bytes:size>, reserved <available_kv_bytes:size> memory for "
        r"KV Cache as specified",
        r"Encoder cache will be initialized with a budget of <encoder_cache_tokens:whole> tokens",
    ),
)

GRAPHS: tuple[Row, ...] = (
    *rows(
        r"Graph capturing finished in <graph_capture_s:number> secs?"
        r"(?:, took <cuda_graph_bytes:size>)?",
        r"Estimated CUDA graph memory: <cuda_graph_estimate_bytes:size>",
        r"CUDA graph pool memory: <cuda_graph_pool_bytes:size> \(actual\), "
        r"<cuda_graph_estimate_bytes:size> \(estimated\)",
        r"init engine \([^)]{1,80}\) took <startup_s:number> s",
    ),
    row(r"Application startup complete", serving=True),
    row(
        r"CUDA graph memory profiling is enabled .{0,60}? "
        r"--gpu-memory-utilization=<gpu_memory_utilization:number> is equivalent to "
        r"--gpu-memory-utilization=<gpu_memory_utilization_without_graphs:number> .{0,120}?"
        r"increase --gpu-memory-utilization to <gpu_memory_utilization_for_same_pool:number>",
        cuda_graph_estimate_applied=True,
    ),
    row(
        r"CUDA graph memory profiling will be enabled by default .{0,400}?increase "
        r"--gpu-memory-utilization from <gpu_memory_utilization:number> to "
        r"<gpu_memory_utilization_for_same_pool:number>",
        cuda_graph_estimate_applied=False,
    ),
    row(
        r"CUDA graph memory profiling is disabled(?:.{0,400}?increasing --gpu-memory-utilization "
        r"from <gpu_memory_utilization:number> to <gpu_memory_utilization_for_same_pool:number>)?",
        cuda_graph_estimate_applied=False,
    ),
)

POOL: tuple[Row, ...] = (
    *rows(
        r"# [A-Za-z]{2,8} blocks: <num_gpu_blocks:whole>, # CPU blocks: <num_cpu_blocks:whole>",
        r"Maximum concurrency for <max_concurrency_tokens:whole> tokens per request: "
        r"<max_concurrency:number>x",
        # The backend's name stands first: GPU, CPU, XPU …
        r"[A-Z]{2,8} KV cache size: <kv_tokens:whole> tokens",
        # The CPU backend's pool, v1/worker/cpu_worker.py (0.32.0)
        r"Explicitly set \(<available_kv_bytes:of_total>/[\d.]+\) GiB for KV cache",
        r"Auto set \(<available_kv_bytes:of_total>/[\d.]+\) GiB for KV cache",
        r"Multiplying the GPU KV cache size by the d?cp_world_size <context_parallel_size:whole>",
        r"num_gpu_blocks is: <num_gpu_blocks:whole>",
        r"Overriding num_gpu_blocks=<num_gpu_blocks_found:whole> with num_gpu_blocks_override="
        r"<num_gpu_blocks_override:whole>",
        r"Add <padding_layers:whole> padding layers, may waste at most "
        r"<padding_waste_share:percent>%",
        r"Setting attention block size to <attention_block_size:whole> tokens to ensure",
        r"Padding mamba page size by <mamba_page_padding_share:percent>%",
        r"set mamba_page_size_padded to <mamba_page_bytes:bytes> bytes",
        r"Mamba cache mode is set to '<mamba_cache_mode:word>'",
    ),
    row(r"Hybrid KV cache manager is disabled for this hybrid model", hybrid_manager_disabled=True),
)

# Errors that people pass on as their terminal or their forum cut them.
CUT: tuple[Row, ...] = (
    row(  # V0
        r"max seq len \(<max_model_len:whole>\) is larger than the maximum number of tokens that "
        r"can be stored in KV cache \(<kv_tokens:whole>\)",
        failure="length_exceeds_pool",
    ),
    row(  # V1
        r"max seq len \(<max_model_len:whole>\), \(?<needed_kv_bytes:size> KV cache is needed, "
        r"which is larger than the available KV cache memory \(<available_kv_bytes:size>\)"
        r"(?:\. Based on the available memory, the estimated maximum model length is "
        r"<estimated_max_model_len:whole>)?",
        failure="length_exceeds_pool",
    ),
    row(
        r"Free memory on device(?: <device:word>)? \(<free_gpu_bytes:of_total>/"
        r"<total_gpu_bytes:size>\) on startup is less than desired GPU memory utilization "
        r"\(<gpu_memory_utilization:number>, <requested_bytes:size>\)",
        failure="memory_taken",
    ),
)

ERRORS: tuple[Row, ...] = (
    *CUT,
    row(r"No available memory for the cache blocks", failure="no_cache_memory"),
    row(r"with <private_pool_bytes:size> allocated in private pools"),
    row(
        r"out of memory\. Tried to allocate <allocation_bytes:size>(?:\. GPU \S{1,12} has a total "
        r"capacity of <total_gpu_bytes:size> of which <free_gpu_bytes:size> is free)?",
        failure="out_of_memory",
    ),
    row(
        r"max_num_seqs \(<max_num_seqs:whole>\) exceeds available Mamba cache blocks "
        r"\(<state_blocks:whole>\)",
        failure="states_exceed_pool",
    ),
    row(
        r"max_model_len \(<max_model_len:whole>\) is greater than the derived max_model_len "
        r"\(\w{1,60}=<model_max_len:whole>",
        failure="length_exceeds_model",
    ),
    # _dummy_sampler_run and _dummy_pooler_run of v1/worker/gpu_model_runner.py (0.8.5, 0.32.0)
    row(
        r"out of memory occurred when warming up (?:sampler|pooler) (?:\([^)]{1,60}\) )?with "
        r"<dummy_requests:whole> dummy requests",
        failure="sampler_exceeds_memory",
    ),
    # determine_available_memory of v1/worker/gpu_worker.py (0.9.2 to 0.32.0)
    row(
        r"Error in memory profiling\. Initial free memory <free_before_profile_bytes:size>, "
        r"current free memory <free_after_profile_bytes:size>",
        failure="profile_disturbed",
    ),
    # v1/engine/core.py and v1/engine/utils.py (0.9.2 to 0.32.0), V0's api_server.py (0.9.2): what
    # is printed above or below the cause, whatever it is
    row(r"(?:EngineCore|WorkerProc|Engine process) failed to start", failure=UNTOLD),
    row(r"Engine core initialization failed", failure=UNTOLD),
)

# Frames of a traceback: the innermost that is known is what memory was taken for.
FRAMES: tuple[Row, ...] = (
    row(r", in load_model\b", stage="load_model"),
    row(r", in profile_run\b", stage="profile_run"),
    row(r", in _dummy_sampler_run\b", stage="sampler"),
    row(r", in capture_model\b", stage="capture_model"),
    # v1/attention/ops/vit_attn_wrappers.py; embed_multimodal was get_multimodal_embeddings
    row(r", in (?:vit_\w{1,40}_wrapper|embed_multimodal|get_multimodal_embeddings)\b",
        stage="encoder"),
)  # fmt: skip

ALL = (*SETTINGS, *WEIGHTS, *PROFILE, *GRAPHS, *POOL, *ERRORS, *FRAMES)
