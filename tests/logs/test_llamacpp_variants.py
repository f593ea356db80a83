"""Lines of llama.cpp, ik_llama.cpp and LM Studio of every age, one wording each."""

from __future__ import annotations

from typing import Any

import pytest

from kvplan.core.units import MIB
from kvplan.logs.facts import Start
from kvplan.logs.read import read_log


def mib(value: float) -> int:
    return round(value * MIB)


def start_of(*lines: str) -> Start:
    start = read_log(("\n".join(lines) + "\n").encode()).start
    assert start is not None
    return start


def said(*lines: str) -> dict[str, Any]:
    return {fact.name: fact.value for fact in start_of(*lines).facts}


KV = {
    # to about b4500, early 2025, March 2025, April to May 2025
    "llama_new_context_with_model: KV self size  = 4352.00 MiB, K (q8_0): 2176.00 MiB, V (q8_0): "
    "2176.00 MiB": {"kv_bytes": mib(4352), "k_bytes": mib(2176), "v_type": "q8_0"},
    "llama_init_from_model: KV self size  =  112.00 MiB, K (f16):   56.00 MiB, V (f16):   56.00 MiB":
        {"kv_bytes": mib(112), "k_type": "f16", "v_bytes": mib(56)},
    "llama_context: KV self size  = 1952.00 MiB, K (f16): 976.00 MiB, V (f16): 976.00 MiB":
        {"kv_bytes": mib(1952)},
    "llama_kv_cache_unified: KV self size  = 1598.00 MiB, K (q8_0):  799.00 MiB, V (q8_0):  799.00"
    " MiB": {"kv_bytes": mib(1598)},
    # May to July 2025, July 2025 on, September 2025 on
    "llama_kv_cache_unified: size =  128.00 MiB (  4096 cells,  16 layers,  1 seqs), K (f16):   "
    "64.00 MiB, V (f16):   64.00 MiB": {
        "kv_cells": 4096, "kv_layers": 16, "kv_sequences": 1, "kv_streams": 1, "kv_tokens": 4096},
    "llama_kv_cache_unified: size =  512.00 MiB (  1024 cells,  32 layers,  2/ 1 seqs), K (f16): "
    "256.00 MiB, V (f16): 256.00 MiB": {"kv_sequences": 2, "kv_streams": 1, "kv_tokens": 1024},
    "llama_kv_cache: size = 6144.00 MiB (  4096 cells,  48 layers, 16/16 seqs), K (f16): 3072.00 "
    "MiB, V (f16): 3072.00 MiB": {"kv_streams": 16, "kv_tokens": 65536, "kv_cells": 4096},
    # a fork that leaves out sequences
    "llama_kv_cache: size =   35.00 MiB (  8192 cells,   5 layers), K (turbo3):   17.50 MiB, V "
    "(turbo3):   17.50 MiB": {"kv_cells": 8192, "kv_layers": 5, "k_type": "turbo3"},
    "llama_kv_cache_init: kv_size = 32768, offload = 1, type_k = 'q8_0', type_v = 'q8_0', n_layer = "
    "64, can_shift = 1": {"kv_cells": 32768, "k_type": "q8_0"},
    "llama_kv_cache_unified: kv_size = 4096, type_k = 'f16', type_v = 'f16', n_layer = 28, can_shift"
    " = 1, padding = 32": {"kv_cells": 4096},
    # absorbed latent attention, and its forms in ik_llama.cpp
    "llama_kv_cache: size =   54.00 MiB (  4096 cells,   6 layers,  2/2 seqs), K (f16):   54.00 MiB,"
    " V (f16):    0.00 MiB": {"k_bytes": mib(54), "v_bytes": 0, "kv_tokens": 8192},
    "llama_new_context_with_model: KV self size  = 1166.62 MiB, c^KV (q8_0): 1166.62 MiB, kv^T: not "
    "used": {"kv_bytes": mib(1166.62), "k_bytes": mib(1166.62), "v_bytes": 0, "k_type": "q8_0"},
    "llama_new_context_with_model: KV self size  =   64.81 MiB, c^KV (f16):   34.31 MiB, kv^T (f16):"
    "   30.50 MiB": {"k_bytes": mib(34.31), "v_bytes": mib(30.5)},
    "llama_new_context_with_model: KV self size  = 2440.00 MiB, K (f16): 1464.00 MiB, V (f16):  "
    "976.00 MiB": {"k_bytes": mib(1464), "v_bytes": mib(976)},
    "llama_new_context_with_model: KV self size  =   34.31 MiB, K^R (f16):    3.81 MiB, c^KV (f16): "
    "  30.50 MiB": {"kv_bytes": mib(34.31), "k_rope_bytes": mib(3.81), "k_bytes": mib(30.5)},
    "llama_new_context_with_model: KV self size  =  500.00 MiB, c^KV (q8_KV):  500.00 MiB, kv^T: not"
    " used": {"k_type": "q8_KV"},
    "llama_init: KV self indexer size =  122.00 MiB (f16)": {"indexer_kv_bytes": mib(122)},
    # states
    "llama_memory_recurrent: size =  251.25 MiB (     4 cells,  40 layers,  4 seqs), R (f32):   "
    "11.25 MiB, S (f32):  240.00 MiB": {
        "recurrent_state_bytes": mib(251.25), "state_slots": 4, "conv_state_bytes": mib(11.25)},
    "llama_memory_recurrent: size = 1795.50 MiB (     4 cells,  64 layers,  4 seqs  2 rs_seq), R "
    "(f32):   67.50 MiB, S (f32): 1728.00 MiB": {
        "state_snapshots": 2, "state_sequences": 4, "ssm_state_bytes": mib(1728)},
    # a locale
    "llama_new_context_with_model: KV self size  = 12312,00 MiB, K (f16): 6156,00 MiB, V (f16): "
    "6156,00 MiB": {"kv_bytes": mib(12312), "k_bytes": mib(6156)},
}  # fmt: skip

OTHERS = {
    "llama_context: n_ctx_per_seq = 4096": {"max_model_len": 4096},
    "llama_context: n_ctx_seq     = 65536": {"max_model_len": 65536},
    "llama_context: flash_attn    = auto": {"flash_attention": "auto"},
    "load_tensors: offloaded 25/25 layers to GPU": {"gpu_layers": 25, "offloadable_layers": 25},
    "llama_model_loader: - kv   0:  general.name str              = Gemma 3 270m":
        {"model": "Gemma 3 270m"},
    "llm_load_print_meta: model size       = 386.183 GiB (4.936 BPW)":
        {"model_file_bytes": round(386.183 * 2**30)},
    "llm_load_print_meta: model ftype      = Q4_K - Medium": {"file_type": "Q4_K_M"},
    "print_info: file type   = IQ4_XS - 4.25 bpw": {"file_type": "IQ4_XS"},
    "print_info: file type   = all F32": {"file_type": "F32"},
    "print_info: file type   = all F32 (guessed)": {"file_type": "F32"},
    "print_info: file type   = Q2_K - Medium": {"file_type": "Q2_K"},
    "print_info: file type   = Q2_K - Small": {"file_type": "Q2_K_S"},
    "print_info: file type   = IQ3_S mix - 3.66 bpw": {"file_type": "IQ3_M"},
    "common_params_fit_impl: projected to use 71326 MiB of device memory vs. 120459 MiB of free "
    "device memory": {"projected_bytes": mib(71326), "free_gpu_bytes": mib(120459)},
    "common_params_fit_impl: will leave 49133 >= 1024 MiB of free device memory, no changes needed":
        {"left_free_target_bytes": mib(1024), "left_free_bytes": mib(49133)},
    "llama_model_load_from_file_impl: using device CUDA0 (NVIDIA GeForce RTX 4060 Ti) (0000:01:00.0)"
    " - 15221 MiB free": {"gpu": "NVIDIA GeForce RTX 4060 Ti", "free_gpu_bytes": mib(15221)},
    "  Device 0: NVIDIA GeForce RTX 3090, compute capability 8.6, VMM: yes":
        {"gpu": "NVIDIA GeForce RTX 3090"},
}  # fmt: skip


@pytest.mark.parametrize("line", [*KV, *OTHERS])
def test_what_a_line_states(line: str) -> None:
    """Sizes in bytes, cells of a stream, K and V apart."""
    wanted = {**KV, **OTHERS}[line]
    found = said("llama_model_loader: loaded meta data from a.gguf", line)

    assert wanted == {name: found.get(name) for name in wanted}


@pytest.mark.parametrize(
    "line",
    [
        "print_info: file type   = unknown, may not work",
        "print_info: model type       = 32B",
        "llm_load_print_meta: model type       = 70B",
    ],
)
def test_no_type_of_a_file(line: str) -> None:
    """The model's size in words is no file type, and neither is what the loader does not know."""
    start = start_of("print_info: file type   = Q4_K - Medium", line)

    assert "Q4_K_M" == start.flags["--quantization"]


BUFFERS = {
    "llm_load_tensors:      CUDA0 buffer size = 21995.70 MiB": ("model", "CUDA0"),
    "load_tensors:        CUDA0 model buffer size = 17931.70 MiB": ("model", "CUDA0"),
    "load_tensors:   CPU_Mapped model buffer size =   235.16 MiB": ("model", "CPU_Mapped"),
    "load_tensors: HTP0-REPACK model buffer size =   504.00 MiB": ("model", "HTP0-REPACK"),
    "load_tensors: RPC[10.0.0.2:50052] model buffer size =  1504.00 MiB":
        ("model", "RPC[10.0.0.2:50052]"),
    "llama_kv_cache_init:      CUDA0 KV buffer size =  2788.00 MiB": ("kv", "CUDA0"),
    "llama_memory_recurrent:      CUDA2 RS buffer size =   134.00 MiB": ("recurrent", "CUDA2"),
    "llama_new_context_with_model:      CUDA0 compute buffer size =   233.00 MiB":
        ("compute", "CUDA0"),
    "llama_context:      CUDA0 compute buffer size =   150.00 MiB": ("compute", "CUDA0"),
    "sched_reserve:      CUDA0 compute buffer size =   372.06 MiB": ("compute", "CUDA0"),
    "llama_context:  CUDA_Host  output buffer size =     0.58 MiB": ("output", "CUDA_Host"),
}  # fmt: skip


@pytest.mark.parametrize("line", BUFFERS)
def test_buffers_are_their_devices(line: str) -> None:
    """What is on which device."""
    kind, device = BUFFERS[line]
    size = mib(float(line.split("=")[1].split(maxsplit=1)[0]))

    fact = start_of(line).last(f"{kind}_buffer_bytes")
    assert fact is not None
    assert (size, device) == (fact.value, fact.rank)


def test_weights_of_several_files_add_up() -> None:
    """A split model has a mapped buffer of each file on the same device."""
    line = "load_tensors:   CPU_Mapped model buffer size =  1000.00 MiB"

    assert mib(2000) == start_of(line, line).by_rank("model_buffer_bytes")["CPU_Mapped"].value


def test_windows_have_a_cache_of_their_own() -> None:
    """The cache behind ``creating SWA`` is the window's."""
    found = said(
        "llama_kv_cache_iswa: creating non-SWA KV cache, size = 56064 cells",
        "llama_kv_cache:      CUDA0 KV buffer size =  1314.00 MiB",
        "llama_kv_cache: size = 1314.00 MiB ( 56064 cells,  12 layers,  1/1 seqs), K (f16):  657.00"
        " MiB, V (f16):  657.00 MiB",
        "llama_kv_cache_iswa: creating     SWA KV cache, size = 1024 cells",
        "llama_kv_cache:      CUDA0 KV buffer size =    24.00 MiB",
        "llama_kv_cache: size =   24.00 MiB (  1024 cells,  12 layers,  1/1 seqs), K (q8_0):   12.00"
        " MiB, V (q8_0):   12.00 MiB",
    )

    wanted = {
        "kv_cells": 56064, "swa_kv_cells": 1024, "kv_buffer_bytes": mib(1314),
        "swa_kv_buffer_bytes": mib(24), "k_type": "f16", "swa_k_type": "q8_0",
    }  # fmt: skip
    assert wanted == {name: found.get(name) for name in wanted}


def test_full_windows_are_a_flag() -> None:
    """--swa-full, or a library's default."""
    start = start_of(
        "llama_kv_cache_iswa: using full-size SWA cache (ref: https://github.com/)",
        "llama_kv_cache: size =   24.00 MiB (  1024 cells,  12 layers,  1/1 seqs)",
    )

    assert start.flags["--swa-full"] is True


def test_a_table_of_memory() -> None:
    """Unsigned columns: what is unaccounted for may be negative."""
    start = start_of(
        "llama_memory_breakdown_print: | memory breakdown [MiB] | total    free     self   model   "
        "context   compute       unaccounted |",
        "llama_memory_breakdown_print: |   - CUDA0 (RTX 3090)   | 24117 = 23773 + (20903 = 12096 +    "
        "7504 +    1302) + 17592186023856 |",
        "common_memory_breakdown_print: |   - Host               |                  439 =   225 +     "
        "136 +      77                |",
    )

    def column(name: str, device: str) -> Any:
        return start.by_rank(name)[device].value

    assert -20560 * MIB == column("unaccounted_bytes", "CUDA0")
    assert 7504 * MIB == column("context_bytes", "CUDA0")
    assert 136 * MIB == column("context_bytes", "Host")


def test_a_draft_is_apart() -> None:
    """The draft's context follows the target's and keeps its names apart."""
    cache = "llama_kv_cache: size = {0:7.2f} MiB (  4096 cells,  48 layers,  1/1 seqs)"
    found = said(
        cache.format(6144),
        "srv    load_model: loading draft model 'draft.gguf'",
        "llama_model_loader: loaded meta data with 33 key-value pairs from draft.gguf",
        cache.format(128),
    )

    assert (mib(6144), mib(128)) == (found["kv_bytes"], found["draft_kv_bytes"])


def test_a_second_load_is_a_second_start() -> None:
    """The last is explained."""
    loader = "llama_model_loader: loaded meta data with 33 key-value pairs from a.gguf"
    cache = "llama_kv_cache: size = {0:7.2f} MiB (  4096 cells,  48 layers,  1/1 seqs)"
    log = read_log("\n".join([loader, cache.format(10), loader, cache.format(20)]).encode())

    sizes = [start.number("kv_bytes") for start in log.starts if start.facts]
    assert [mib(10), mib(20)] == sizes


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ("main: build = 1691 (7082d24)", "b1691"),
        ("build: 6050 (78452405) with cc (GCC) 13 for x86_64", "b6050"),
        ("build_info: b9010-d05fe1d7d", "b9010"),
        ("build      : b8471-f40a80b4f", "b8471"),
        ("build_info: b0-unknown", None),
    ],
)
def test_builds(line: str, version: str | None) -> None:
    """Every form of the build's line."""
    cache = "llama_kv_cache: size =   24.00 MiB (  1024 cells,  12 layers,  1/1 seqs)"

    assert version == start_of(line, cache).version


def test_the_fork_is_told() -> None:
    """Lines that only ik_llama.cpp prints."""
    start = start_of(
        "INFO: build = 3818 (77eaa532)",
        "llama_new_context_with_model: mla_attn   = 3",
        "llama_new_context_with_model: attn_max_b = 512",
        "llama_new_context_with_model: KV self size  = 1166.62 MiB, c^KV (q8_0): 1166.62 MiB, kv^T: "
        "not used",
    )

    flags = (start.flags["--mla-use"], start.flags["--attention-max-batch"])
    assert ("ik_llama.cpp", "3818", (3, 512)) == (start.engine, start.version, flags)


def test_lm_studio_is_named() -> None:
    """It is llama.cpp inside; the fact says who runs it."""
    start = start_of(
        "2025-08-14 21:59:08  [INFO]",
        " [LM STUDIO SERVER] Success! HTTP server listening on port 1234",
        "2025-08-14 21:59:09 [DEBUG]",
        "llama_kv_cache: size =   24.00 MiB (  1024 cells,  12 layers,  1/1 seqs)",
    )

    name = start.last("host_application")
    assert ("llama.cpp", "LM Studio") == (start.engine, name.value if name else None)
