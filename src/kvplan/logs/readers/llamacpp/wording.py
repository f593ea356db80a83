"""Lines of llama.cpp that need no state: the model, the context's settings, projections, errors.

src/llama-model.cpp (print_info), llama-context.cpp, common/fit.cpp (b11434); llama.cpp before
(llm_load_print_meta, llama_new_context_with_model) and ik_llama.cpp print the same words.
"""

from __future__ import annotations

from typing import Final

from kvplan.logs.readers.base import Row, row, rows

MODEL: Final[tuple[Row, ...]] = rows(
    "general.name +(?:str +)?= <model:quoted>",
    r"\barch += <architecture:word>",
    "n_ctx_train += <trained_context_tokens:whole>",
    r"n_embd += <embedding_size:whole>",
    r"n_layer += <num_layers:whole>",
    r"n_head += <num_heads:whole>",
    r"n_head_kv += <num_kv_heads:whole>",
    r"n_embd_head_k += <key_dim:whole>",
    r"n_embd_head_v += <value_dim:whole>",
    r"n_embd_k_gqa += <k_width:whole>",
    r"n_embd_v_gqa += <v_width:whole>",
    r"n_swa += <window_size:whole>",
    r"n_lora_kv += <latent_rank:whole>",
    r"n_vocab += <vocabulary_size:whole>",
    r"(?:file|model) size += <model_file_bytes:size>",
)

SETTINGS: Final[tuple[Row, ...]] = (
    *rows(
        r"n_ctx += <context_tokens:whole>",
        r"(?:n_ctx_seq|n_ctx_per_seq) += <max_model_len:whole>",
        r"n_seq_max += <kv_sequences:whole>",
        r"n_batch += <batch_tokens:whole>",
        r"n_ubatch += <micro_batch_tokens:whole>",
        r"flash_attn += <flash_attention:word>",
        r"kv_unified += <kv_unified:word>",
        r"mla_attn += <latent_form:whole>",
        r"attn_max_b += <attention_batch_mib:whole>",
        r"n_ctx_slot = <max_model_len:whole>",
        r"kv_size = <kv_cells:whole>, (?:offload = \d, )?type_k = <k_type:quoted>, type_v = "
        "<v_type:quoted>,",
        r"offloaded <gpu_layers:whole>/<offloadable_layers:whole> layers to GPU",
        r"pipeline parallelism enabled \(n_copies=<pipeline_copies:whole>\)",
    ),
    row(
        r"flash_attn (?:is not compatible with|requires) [^\n]{1,80} - forcing off",
        flash_attention="off",
        flash_attention_refused=True,
    ),
)

# A setting's fact, the flag that asks for it.
FLAGS: Final[dict[str, str]] = {
    "context_tokens": "--ctx-size",
    "kv_sequences": "--parallel",
    "batch_tokens": "--batch-size",
    "micro_batch_tokens": "--ubatch-size",
    "flash_attention": "--flash-attn",
    "k_type": "--cache-type-k",
    "v_type": "--cache-type-v",
    "gpu_layers": "--n-gpu-layers",
    "latent_form": "--mla-use",
    "attention_batch_mib": "--attention-max-batch",
}

PROJECTIONS: Final[tuple[Row, ...]] = rows(
    "projected to use <projected_bytes:size> of device memory vs. <free_gpu_bytes:size>"
    " of free device memory",
    "will leave <left_free_bytes:mib> >= <left_free_target_bytes:size> of free device memory",
)

BUFFERS: Final = "buffers_exceed_memory"
# The graph's buffer is asked for once more without copies (src/llama-context.cpp, b6840).
RETRIED: Final = "retrying without pipeline parallelism"

ERRORS: Final[tuple[Row, ...]] = (
    row("failed to allocate buffer for kv cache", "cache_exceeds_memory"),
    row("failed to allocate buffer for rs cache", "states_exceed_memory"),
    row("unable to allocate backend(?: CPU| metal)? buffer", "weights_exceed_memory"),
    row("unable to allocate <device:word> buffer", "weights_exceed_memory"),
    row("error loading model: failed to allocate buffer", "weights_exceed_memory"),
    row("failed to allocate compute (?:pp )?buffers", BUFFERS),
    # Its number is Level Zero's; what was asked for is not said (ggml-sycl.cpp).
    row("UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY", "out_of_memory"),
    row(
        "V cache quantization requires flash_?\\s?attn",
        "quantised_values_need_flash_attention",
    ),
    row(
        "quantized V cache (?:was requested, but this )?requires (?:Flash Attention|flash_attn)",
        "quantised_values_need_flash_attention",
    ),
)
