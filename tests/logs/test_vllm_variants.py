"""Every wording of vLLM that is known, one a row: the line and the facts that it states."""

from __future__ import annotations

from typing import Any

import pytest

from kvplan.core.units import GIB
from kvplan.logs.facts import Fact, Failure, Start
from kvplan.logs.read import read_log
from kvplan.logs.readers.vllm import rows
from kvplan.logs.readers.vllm.reader import VllmReader


def gib(value: float) -> int:
    return round(value * GIB)


def start_of(*lines: str) -> Start:
    start = read_log("\n".join(lines) + "\n").start
    assert start is not None
    return start


def facts_of(*lines: str) -> dict[str, Any]:
    return {fact.name: fact.value for fact in start_of(*lines).facts}


LINES: list[tuple[str, dict[str, Any]]] = [
    ("INFO 08-01 10:00:00 [api_server.py:1977] vLLM API server version 0.10.1.1",
     {"version": "0.10.1.1"}),
    ("INFO 08-01 10:00:00 [utils.py:9]   █▄█▀ █     █     █     █  version 0.25.0",
     {"version": "0.25.0"}),
    ("INFO 08-01 10:00:00 [utils.py:9]    ▀▀  ▀▀▀▀▀ ▀▀▀▀▀ ▀     ▀  model   Qwen/Qwen3-0.6B █",
     {"model": "Qwen/Qwen3-0.6B"}),
    (("Initializing an LLM engine (v0.6.3.post1) with config: model='a/b', tokenizer='a/b', "
     "dtype=torch.float16, max_seq_len=4096, tensor_parallel_size=2, quantization=None"),
     {"version": "0.6.3.post1", "model": "a/b", "dtype": "float16", "max_model_len": 4096,
      "tensor_parallel_size": 2}),
    ("Initializing a V0 LLM engine (v0.10.0) with config: model='a/b', max_seq_len=10",
     {"version": "0.10.0", "model": "a/b", "max_model_len": 10}),
    (("Initializing a V1 LLM engine (v0.25.1) with config: model='a/b', "
     "speculative_config=SpeculativeConfig(method='mtp', model='c/d', num_spec_tokens=1), "
     "kv_cache_dtype=auto, enable_prefix_caching=True, max_seq_len=99"),
     {"version": "0.25.1", "model": "a/b", "kv_cache_dtype": "auto", "max_model_len": 99,
      "enable_prefix_caching": True}),
    (("non-default args: {'model_tag': 'a/b', 'speculative_config': {'method': 'mtp', 'model': "
     "'x, y'}, 'max_model_len': 32768, 'gpu_memory_utilization': 0.85, 'enforce_eager': True}"),
     {"model": "a/b", "max_model_len": 32768, "gpu_memory_utilization": 0.85,
      "enforce_eager": True}),
    (("args: Namespace(subparser='serve', model='a/b', max_num_seqs=256, block_size=None, "
     "kv_cache_dtype='fp8', dispatch_function=<function serve at 0x7f>)"),
     {"model": "a/b", "max_num_seqs": 256, "kv_cache_dtype": "fp8"}),
    ("Using max model len 131072", {"max_model_len": 131072}),
    ("Chunked prefill is enabled with max_num_batched_tokens=8192.",
     {"max_num_batched_tokens": 8192}),
    ("Raising max_num_batched_tokens from 2048 to 2496 to accommodate 'video' input",
     {"max_num_batched_tokens": 2496}),
    ("max_num_scheduled_tokens is set to 4096 based on the speculative decoding settings.",
     {"max_num_scheduled_tokens": 4096}),
    (("FlashInfer resolved query dtypes: prefill=torch.bfloat16, decode=torch.float8_e4m3fn, "
     "kv_cache_dtype=torch.float8_e4m3fn, arch=sm121"), {"kv_dtype_used": "float8_e4m3fn"}),
    ("Using fp8 data type to store kv cache. It reduces the GPU memory footprint",
     {"kv_dtype_used": "fp8"}),
    ("Using DeepSeek's fp8_ds_mla KV cache format.", {"kv_dtype_used": "fp8_ds_mla"}),
    ("Using FP8 indexer cache for Lightning Indexer", {"indexer_dtype_used": "fp8"}),
    ("Using Flash Attention backend.", {"attention_backend": "Flash Attention"}),
    ("Using XFormers backend.", {"attention_backend": "XFormers"}),
    ("Using ROCmFlashAttention backend.", {"attention_backend": "ROCmFlashAttention"}),
    ("Using Flash Attention backend on V1 engine.", {"attention_backend": "Flash Attention"}),
    ("Using FLASH_ATTN attention backend out of potential backends: ('FLASH_ATTN', 'X')",
     {"attention_backend": "FLASH_ATTN"}),
    ("Using AttentionBackendEnum.TRITON_MLA backend.", {"attention_backend": "TRITON_MLA"}),
    ("Setting kv cache block size to 64 for DEEPSEEK_V32_INDEXER backend.", {"block_size": 64}),
    ("Loading model weights took 14.9888 GB", {"weights_bytes": gib(14.9888)}),
    ("Model loading took 14.9889 GiB and 4.05 seconds",
     {"weights_bytes": gib(14.9889), "loading_s": 4.05}),
    ("Model loading took 14.99 GiB memory and 4.05 seconds",
     {"weights_bytes": gib(14.99), "loading_s": 4.05}),
    (("Memory profiling results: total_gpu_memory=23.58GiB initial_memory_usage=15.34GiB "
     "peak_torch_memory=17.06GiB memory_usage_post_profile=15.35GiB non_torch_memory=0.35GiB "
     "kv_cache_size=3.81GiB gpu_memory_utilization=0.90"),
     {"total_gpu_bytes": gib(23.58), "peak_torch_bytes": gib(17.06),
      "non_torch_bytes": gib(0.35), "available_kv_bytes": gib(3.81),
      "used_after_profile_bytes": gib(15.35), "gpu_memory_utilization": 0.9}),
    (("the current vLLM instance can use total_gpu_memory (23.52GiB) x gpu_memory_utilization "
     "(0.95) = 22.34GiB"),
     {"total_gpu_bytes": gib(23.52), "gpu_memory_utilization": 0.95,
      "requested_bytes": gib(22.34)}),
    (("model weights take 2.88GiB; non_torch_memory takes 0.08GiB; PyTorch activation peak memory "
     "takes 2.62GiB; the rest of the memory reserved for KV Cache is 16.76GiB."),
     {"weights_bytes": gib(2.88), "non_torch_bytes": gib(0.08),
      "activation_peak_bytes": gib(2.62), "available_kv_bytes": gib(16.76)}),
    (("Memory profiling takes 13.56 seconds. Total non KV cache memory: 8.21GiB; torch peak memory "
     "increase: 0.59GiB; non-torch forward increase memory: 0.06GiB; weights memory: 7.56GiB."),
     {"non_kv_bytes": gib(8.21), "activation_peak_bytes": gib(0.59),
      "non_torch_bytes": gib(0.06), "weights_bytes": gib(7.56)}),
    (("Free memory on device (43.93/44.42 GiB) on startup. Desired GPU memory utilization is (0.9, "
     "39.98 GiB). Actual usage is 27.72 GiB for weight, 1.4 GiB for peak activation, 0.21 GiB for "
     "non-torch memory, and 3.45 GiB for CUDAGraph memory. Replace gpu_memory_utilization config "
     "with `--kv-cache-memory=7564378828` to fit into requested memory, or "
     "`--kv-cache-memory=11809093120` to fully utilize gpu memory. Current kv cache memory in use "
     "is 11423138508 bytes."),
     {"free_gpu_bytes": gib(43.93), "total_gpu_bytes": gib(44.42), "gpu_memory_utilization": 0.9,
      "requested_bytes": gib(39.98), "weights_bytes": gib(27.72),
      "activation_peak_bytes": gib(1.4), "non_torch_bytes": gib(0.21),
      "cuda_graph_bytes": gib(3.45), "kv_memory_to_fit_bytes": 7564378828,
      "kv_memory_to_fill_bytes": 11809093120, "kv_in_use_bytes": 11423138508}),
    (("Free memory on device (93.1/94.9 GiB) on startup. Desired GPU memory utilization is (0.7, "
     "66.4 GiB). Actual usage is 57.26 GiB for consumed memory (weights + non-torch), 0.23 GiB for "
     "peak activation, and 0.11 GiB for CUDAGraph memory. Replace gpu_memory_utilization config "
     "with `--kv-cache-memory=7564378828` (7.04 GiB) to fit into requested memory, or "
     "`--kv-cache-memory=11809093120` (11.0 GiB) to fully utilize gpu memory. Current kv cache "
     "memory in use is 8.79 GiB."),
     {"consumed_bytes": gib(57.26), "activation_peak_bytes": gib(0.23),
      "cuda_graph_bytes": gib(0.11), "kv_memory_to_fit_bytes": 7564378828,
      "kv_memory_to_fill_bytes": 11809093120, "kv_in_use_bytes": gib(8.79)}),
    ("Available KV cache memory: 39.28 GiB", {"available_kv_bytes": gib(39.28)}),
    ("Available KV cache memory: -2.14 GiB", {"available_kv_bytes": gib(-2.14)}),
    (("Initial free memory 31.16 GiB, reserved 4.25 GiB memory for KV Cache as specified by "
     "kv_cache_memory_bytes config and skipped memory profiling."),
     {"free_gpu_bytes": gib(31.16), "available_kv_bytes": gib(4.25)}),
    ("INFO:     Application startup complete.", {"serving": True}),
    (("Of the allocated memory 20.21 GiB is allocated by PyTorch, with 128.00 MiB allocated in "
     "private pools (e.g., CUDA Graphs), and 185.98 MiB is reserved"),
     {"private_pool_bytes": 128 << 20}),
    ('File "/x/vllm/v1/worker/gpu_worker.py", line 300, in load_model', {"stage": "load_model"}),
    ('File "/x/v1/worker/gpu_model_runner.py", line 3, in profile_run', {"stage": "profile_run"}),
    ('File "/x/gpu_model_runner.py", line 3, in _dummy_sampler_run', {"stage": "sampler"}),
    ('File "/x/gpu_model_runner.py", line 3, in capture_model', {"stage": "capture_model"}),
    ('File "/x/vit_attn_wrappers.py", line 268, in vit_torch_sdpa_wrapper', {"stage": "encoder"}),
    ('File "/x/qwen2_5_vl.py", line 268, in embed_multimodal', {"stage": "encoder"}),
    ("Encoder cache will be initialized with a budget of 16384 tokens, and profiled with 1 image",
     {"encoder_cache_tokens": 16384}),
    ("Graph capturing finished in 28 secs.", {"graph_capture_s": 28.0}),
    ("Graph capturing finished in 7 secs, took 0.38 GiB",
     {"graph_capture_s": 7.0, "cuda_graph_bytes": gib(0.38)}),
    ("Graph capturing finished in 7 secs, took -0.97 GiB", {"cuda_graph_bytes": gib(-0.97)}),
    ("Estimated CUDA graph memory: 0.28 GiB total", {"cuda_graph_estimate_bytes": gib(0.28)}),
    (("In v0.19, CUDA graph memory profiling will be enabled by default "
     "(VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=1), which more accurately accounts for CUDA graph "
     "memory. To keep, increase --gpu-memory-utilization from 0.8500 to 0.8523."),
     {"cuda_graph_estimate_applied": False, "gpu_memory_utilization": 0.85,
      "gpu_memory_utilization_for_same_pool": 0.8523}),
    (("CUDA graph memory profiling is enabled (default since v0.21.0). The current "
     "--gpu-memory-utilization=0.8500 is equivalent to --gpu-memory-utilization=0.8301 without CUDA "
     "graph memory profiling. To maintain the same effective KV cache size as before, increase "
     "--gpu-memory-utilization to 0.8699. To disable, set it to 0."),
     {"cuda_graph_estimate_applied": True, "gpu_memory_utilization": 0.85,
      "gpu_memory_utilization_without_graphs": 0.8301,
      "gpu_memory_utilization_for_same_pool": 0.8699}),
    ("CUDA graph memory profiling is disabled (VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=0).",
     {"cuda_graph_estimate_applied": False}),
    (("CUDA graph memory profiling is disabled (VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=0). "
     "Consider re-enabling it (the default as of v0.21.0) and increasing --gpu-memory-utilization "
     "from 0.9350 to 0.9595."),
     {"cuda_graph_estimate_applied": False, "gpu_memory_utilization": 0.935,
      "gpu_memory_utilization_for_same_pool": 0.9595}),
    ("CUDA graph pool memory: 1.73 GiB (actual), 0.28 GiB (estimated), difference: 1.45 GiB",
     {"cuda_graph_pool_bytes": gib(1.73), "cuda_graph_estimate_bytes": gib(0.28)}),
    ("init engine (profile, create kv cache, warmup model) took 57.31 seconds",
     {"startup_s": 57.31}),
    ("init engine (profile, create kv cache, warmup model) took 25.81 s (compilation: 7.53 s)",
     {"startup_s": 25.81}),
    ("# GPU blocks: 2987, # CPU blocks: 4096", {"num_gpu_blocks": 2987, "num_cpu_blocks": 4096}),
    ("# cuda blocks: 2987, # CPU blocks: 0", {"num_gpu_blocks": 2987}),
    ("# CUDA blocks: 2987, # CPU blocks: 0", {"num_gpu_blocks": 2987}),
    ("# rocm blocks: 2987, # CPU blocks: 0", {"num_gpu_blocks": 2987}),
    ("Maximum concurrency for 32768 tokens per request: 1.46x",
     {"max_concurrency_tokens": 32768, "max_concurrency": 1.46}),
    ("GPU KV cache size: 2,640,144 tokens", {"kv_tokens": 2640144}),
    ("Maximum concurrency for 16,384 tokens per request: 284.25x",
     {"max_concurrency_tokens": 16384, "max_concurrency": 284.25}),
    (("GPU KV cache size: 3,179,961 tokens, Maximum concurrency for 1,048,576 tokens per request: "
     "3.03x"), {"kv_tokens": 3179961, "max_concurrency_tokens": 1048576, "max_concurrency": 3.03}),
    ("CPU KV cache size: 1,000 tokens", {"kv_tokens": 1000}),
    ("XPU KV cache size: 1,000 tokens", {"kv_tokens": 1000}),
    ("Explicitly set (1.0/19.46) GiB for KV cache on node 0.", {"available_kv_bytes": 1 << 30}),
    ("Auto set (2.5/19.46) GiB for KV cache on node 0.", {"available_kv_bytes": 5 << 29}),
    ("Multiplying the GPU KV cache size by the dcp_world_size 8.", {"context_parallel_size": 8}),
    (("Multiplying the GPU KV cache size by the cp_world_size 8 (pcp_world_size 1 * "
     "dcp_world_size 8)."), {"context_parallel_size": 8}),
    ("vllm cache_config_info with initialization after num_gpu_blocks is: 89994",
     {"num_gpu_blocks": 89994}),
    ("Overriding num_gpu_blocks=65 with num_gpu_blocks_override=50",
     {"num_gpu_blocks_found": 65, "num_gpu_blocks_override": 50}),
    (("Auto-fit max_model_len: reduced from 262144 to 90000 to fit in available GPU memory (3.0 "
     "GiB available for KV cache)"), {"asked_max_model_len": 262144, "max_model_len": 90000}),
    ("Add 8 padding layers, may waste at most 15.38% KV cache memory",
     {"padding_layers": 8, "padding_waste_share": 0.1538}),
    (("Setting attention block size to 1072 tokens to ensure that attention page size is >= mamba "
     "page size."), {"attention_block_size": 1072}),
    (("Padding mamba page size by 0.76% to ensure that mamba page size and attention page size are "
     "exactly equal."), {"mamba_page_padding_share": 0.0076}),
    (("[XPU]Setting attention block size to 64 tokens to ensure multiple of 64, set "
     "mamba_page_size_padded to 4096 bytes accordingly, before was 4000 bytes."),
     {"attention_block_size": 64, "mamba_page_bytes": 4096}),
    ("Mamba cache mode is set to 'align' for X by default when prefix caching is enabled",
     {"mamba_cache_mode": "align"}),
    (("Hybrid KV cache manager is disabled for this hybrid model, This means we do not enable any "
     "optimizations for saving KV cache memory"), {"hybrid_manager_disabled": True}),
    (("Using default MoE config. Config file not found at ['/x/E=128,N=768,"
     "device_name=NVIDIA_H100_80GB_HBM3.json']"), {"gpu": "NVIDIA H100 80GB HBM3"}),
]  # fmt: skip


@pytest.mark.parametrize(("line", "wanted"), LINES, ids=[line[:60] for line, _ in LINES])
def test_a_line_states(line: str, wanted: dict[str, Any]) -> None:
    """A wording reads to its figures, alone and behind a worker's prefix."""
    behind = f"(EngineCore pid=9) INFO 11-30 12:00:00 [x.py:1] {line}"

    for said in (line, behind):
        found = facts_of(said)
        assert wanted == {name: found.get(name) for name in wanted}


def test_no_wording_is_untried() -> None:
    """Each row of the tables is the row of some line here or of an error."""
    texts = [line for line, _ in LINES] + [line for line, *_ in ERRORS] + ONE_FIELD
    untried = [r.pattern.pattern for r in rows.ALL if all(r.match(text) is None for text in texts)]

    assert [] == untried


def test_every_line_has_a_mark() -> None:
    """What the tables read is found by the search for marks."""
    marks = (*VllmReader.marks, *VllmReader.signs)
    lost = [line for line, _ in LINES if not any(mark in line for mark in marks)]

    assert [] == lost


ONE_FIELD = ["total_gpu_memory 23.58GiB", "non_torch_memory: 0.35GiB",
             "available_kv_cache_memory 3.81GiB"]  # fmt: skip


def test_a_field_a_line() -> None:
    """The profile of December 2024 has a line for each field."""
    found = facts_of("Memory profiling results:", *ONE_FIELD)

    assert (gib(23.58), gib(0.35), gib(3.81)) == (
        found["total_gpu_bytes"], found["non_torch_bytes"], found["available_kv_bytes"],
    )  # fmt: skip


SHORT = (
    "To serve at least one request with the {0} max seq len (196608), {1}11.62 GiB KV cache is "
    "needed, which is larger than the available KV cache memory (9.38 GiB).{2} Try increasing it"
)
ESTIMATE = " Based on the available memory, the estimated maximum model length is 158560."
NEEDED = {
    "max_model_len": 196608, "needed_kv_bytes": gib(11.62), "available_kv_bytes": gib(9.38),
}  # fmt: skip
ERRORS: list[tuple[str, str, dict[str, Any]]] = [
    (("ValueError: The model's max seq len (29000) is larger than the maximum number of tokens that "
     "can be stored in KV cache (23648). Try increasing `gpu_memory_utilization`"),
     "length_exceeds_pool", {"max_model_len": 29000, "kv_tokens": 23648}),
    ("ValueError: No available memory for the cache blocks. Try increasing it",
     "no_cache_memory", {}),
    (SHORT.format("models's", "(", ESTIMATE), "length_exceeds_pool",
     NEEDED | {"estimated_max_model_len": 158560}),
    (SHORT.format("model's", "", ESTIMATE), "length_exceeds_pool",
     NEEDED | {"estimated_max_model_len": 158560}),
    (SHORT.format("model's", "(", ""), "length_exceeds_pool", NEEDED),
    (("ValueError: Free memory on device cuda:0 (110.73/121.63 GiB) on startup is less than desired "
     "GPU memory utilization (0.92, 111.9 GiB). Decrease GPU memory utilization"),
     "memory_taken", {"device": "cuda:0", "free_gpu_bytes": gib(110.73),
                      "total_gpu_bytes": gib(121.63), "gpu_memory_utilization": 0.92,
                      "requested_bytes": gib(111.9)}),
    (("ValueError: Free memory on device (1.0/2.0 GiB) on startup is less than desired GPU memory "
     "utilization (0.9, 1.8 GiB)."), "memory_taken", {"free_gpu_bytes": gib(1.0)}),
    (("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 50.00 MiB. GPU 0 has a total "
     "capacity of 47.40 GiB of which 20.00 MiB is free. Including non-PyTorch memory"),
     "out_of_memory", {"allocation_bytes": 50 << 20, "total_gpu_bytes": gib(47.4),
                       "free_gpu_bytes": 20 << 20}),
    (("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB (GPU 0; 23.69 "
     "GiB total capacity)"), "out_of_memory", {"allocation_bytes": gib(1.5)}),
    ("ValueError: max_num_seqs (1024) exceeds available Mamba cache blocks (969). Each decode",
     "states_exceed_pool", {"max_num_seqs": 1024, "state_blocks": 969}),
    (("ValueError: User-specified max_model_len (8192) is greater than the derived max_model_len "
     "(max_position_embeddings=2048 or model_max_length=None in model's config.json)."),
     "length_exceeds_model", {"max_model_len": 8192, "model_max_len": 2048}),
    (("RuntimeError: CUDA out of memory occurred when warming up sampler with 1024 dummy requests. "
     "Please try lowering `max_num_seqs`"), "sampler_exceeds_memory", {"dummy_requests": 1024}),
    (("RuntimeError: CUDA out of memory occurred when warming up pooler (task='embed') with 256 "
     "dummy requests."), "sampler_exceeds_memory", {"dummy_requests": 256}),
    (("AssertionError: Error in memory profiling. Initial free memory 82.94 GiB, current free memory "
     "90.17 GiB. This happens when other processes"), "profile_disturbed",
     {"free_before_profile_bytes": gib(82.94), "free_after_profile_bytes": gib(90.17)}),
    ("EngineCore failed to start.", "cause_not_logged", {}),
    ("WorkerProc failed to start.", "cause_not_logged", {}),
    ("RuntimeError: Engine process failed to start. See stack trace", "cause_not_logged", {}),
    ("RuntimeError: Engine core initialization failed. See root cause above.", "cause_not_logged",
     {}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "code", "numbers"), ERRORS, ids=[f"{c}-{i}" for i, (_, c, _) in enumerate(ERRORS)]
)
def test_an_error_is_recognised(line: str, code: str, numbers: dict[str, Any]) -> None:
    """A start-up error is a failure with its figures, once however often it is printed."""
    start = start_of(f"(EngineCore pid=9) ERROR 11-30 12:00:00 [core.py:9] {line}", line)

    assert [code] == [failure.code for failure in start.failures]
    found = start.failures[0].numbers
    assert numbers == {name: found.get(name) for name in numbers}


def test_a_trial_is_no_cap() -> None:
    """While graphs are measured blocks are overridden by 512; that is not a setting."""
    line = "Overriding num_gpu_blocks=9000 with num_gpu_blocks_override=512"

    assert "num_gpu_blocks_override" not in facts_of(line)


def test_several_starts() -> None:
    """A version line after a pool begins a start; the last one is explained."""
    one = ("vLLM API server version 0.11.0", "GPU KV cache size: 1,000 tokens")
    log = read_log("\n".join([*one, *one, one[0], "GPU KV cache size: 2,000 tokens"]))

    assert ([1, 3, 5], 2000) == (
        [start.first_line for start in log.starts],
        log.start and log.start.number("kv_tokens"),
    )


def test_api_servers_are_one_start() -> None:
    """Several API servers of one start say the version, and so do the ranks of data parallelism."""
    log = read_log(
        "\n".join(
            [
                "(APIServer pid=1) vLLM API server version 0.11.0",
                "(EngineCore_DP0 pid=2) Initializing a V1 LLM engine (v0.11.0) with config: model='a'",
                "(EngineCore_DP1 pid=3) Initializing a V1 LLM engine (v0.11.0) with config: model='a'",
                "(ApiServer_1 pid=4) vLLM API server version 0.11.0",
                "(EngineCore_DP0 pid=2) Available KV cache memory: 9.00 GiB",
                "(EngineCore_DP1 pid=3) Available KV cache memory: 8.00 GiB",
            ]
        )
    )

    assert 1 == len(log.starts)
    least = log.starts[0].least("available_kv_bytes")
    assert least == Fact(
        "available_kv_bytes", gib(8), 6, "DP1", "Available KV cache memory: 8.00 GiB"
    )


def test_what_was_said_last_counts() -> None:
    """A pool of a trial run is printed before the real one."""
    start = start_of("GPU KV cache size: 8,192 tokens", "GPU KV cache size: 99,008 tokens")

    assert 99008 == start.number("kv_tokens")


def test_failures_are_kept_apart() -> None:
    """Two errors with other figures are two failures."""
    start = start_of(ERRORS[0][0], ERRORS[0][0].replace("29000", "28000"), ERRORS[1][0])

    assert ["length_exceeds_pool", "length_exceeds_pool", "no_cache_memory"] == [
        failure.code for failure in start.failures if isinstance(failure, Failure)
    ]
