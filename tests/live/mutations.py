"""Configs that nobody published: a type's class defaults with some keys changed.

A rule that only holds for the defaults is found out by changing them. Each mutation is written as
a published config is: the type, the class, and only the keys that differ.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kvplan.readers import defaults

Change = Callable[[random.Random, Any], Any]


def pick(*values: Any) -> Change:
    return lambda rng, _: rng.choice(values)


def nearby(step: int) -> Change:
    return lambda rng, old: max(step, (old or step) + rng.choice((-1, 1, 2)) * step)


HEADS = {"num_attention_heads": (8, 16), "n_head": (8, 16), "num_key_value_heads": (1, 2, 4, 8)}
CHANGES: dict[str, Change] = {
    "num_hidden_layers": pick(2, 3, 5, 6, 9),
    "n_layer": pick(2, 3, 5), "num_layers": pick(2, 3, 5), "depth": pick(2, 3),
    "encoder_layers": pick(2, 3), "decoder_layers": pick(2, 4), "num_decoder_layers": pick(2, 4),
    "vocab_size": nearby(64),
    "intermediate_size": nearby(64), "moe_intermediate_size": nearby(64), "d_ff": nearby(64),
    "shared_expert_intermediate_size": nearby(64), "shared_intermediate_size": nearby(64),
    "ffn_dim": nearby(64), "decoder_ffn_dim": nearby(64), "encoder_ffn_dim": nearby(64),
    "hidden_size": pick(512, 1024, 768, 2048), "d_model": pick(256, 512), "n_embd": pick(512, 1024),
    **{key: pick(*values) for key, values in HEADS.items()},
    "head_dim": pick(32, 64, 128, 96),
    "sliding_window": pick(16, 100, 512),
    "attention_chunk_size": pick(16, 128),
    "kv_lora_rank": pick(64, 256), "q_lora_rank": pick(None, 128, 192),
    "qk_nope_head_dim": pick(32, 64), "qk_rope_head_dim": pick(16, 32), "v_head_dim": pick(32, 64),
    "index_head_dim": pick(64, 96), "index_n_heads": pick(4, 8),
    "n_routed_experts": pick(8, 16), "num_experts": pick(8, 16), "num_local_experts": pick(4, 8),
    "num_experts_per_tok": pick(1, 2), "n_shared_experts": pick(0, 1, 2),
    "expert_ffn_hidden_size": nearby(64),
    "shared_experts_intermediate_size": nearby(64), "zero_expert_num": pick(0, 8),
    "moe_topk": pick(1, 2), "gated_norm_rank": pick(8, 24), "hc_mult": pick(2, 3),
    "o_groups": pick(2, 4), "o_lora_rank": pick(64, 128),
    "first_k_dense_replace": pick(0, 1, 2), "num_kv_shared_layers": pick(0, 1, 2),
    "max_position_embeddings": pick(1024, 2048, 4096), "n_positions": pick(512, 2048),
    "state_size": pick(8, 32), "conv_kernel": pick(3, 4), "expand": pick(2),
    "mamba_d_state": pick(16, 32), "mamba_d_conv": pick(3, 4), "n_groups": pick(1, 2),
    "linear_num_value_heads": pick(16, 32), "linear_num_key_heads": pick(8, 16),
    "linear_key_head_dim": pick(64, 128), "linear_value_head_dim": pick(64, 128),
    "linear_conv_kernel_dim": pick(3, 4), "full_attention_interval": pick(2, 3, 4),
    "linear_num_heads": pick(8, 16), "linear_head_dim": pick(64, 128),
    "short_conv_kernel_size": pick(3, 4), "layer_group_size": pick(2, 3),
    "mamba_num_heads": pick(16, 32), "mamba_head_dim": pick(32, 64), "ssm_state_size": pick(16, 64),
    "mamba_n_groups": pick(1, 2), "mamba_ngroups": pick(1, 2), "mamba_d_ssm": pick(None, 2048),
    "moe_latent_size": pick(None, 128), "moe_shared_expert_intermediate_size": nearby(64),
    "attn_layer_indices": pick([0], [1, 2]), "attn_layer_offset": pick(0, 1),
    "attn_layer_period": pick(2, 5), "expert_layer_period": pick(2, 3), "lru_width": pick(320, 640),
    "attention_window_size": pick(16, 100), "conv1d_width": pick(2, 3), "adapter_rank": pick(16),
    "num_mem_blocks": pick(1, 2, 3), "use_shared_attention_adapter": pick(True, False),
    "conv_L_cache": pick(3, 4, 5), "full_attn_idxs": pick([0], [1, 2]),
    "block_auto_adjust_ff_dim": pick(True, False), "block_multiple_of": pick(128, 256),
    "use_attention_gate": pick(True, False),
    "sliding_window_size": pick(16, 100), "swa_head_dim": pick(64, 128),
    "swa_num_attention_heads": pick(16, 32), "swa_num_key_value_heads": pick(4, 8),
    "conv_kernel_size": pick(2, 3), "d_rel": pick(8, 24), "rel_extent": pick(64, 128),
    "local_layer_ids": pick([0], [1]), "loop_num_passes": pick(1, 2, 4), "loop_gate_rank": pick(32),
    "unpadded_vocab_size": pick(1000, 2000), "cca_time0": pick(2, 3), "cca_time1": pick(2, 3),
    "router_hidden_size": pick(128, 192), "ple_layer_ids": pick([1], [1, 2]),
    "ngram_vocab_size_base": pick(1000, 5000), "hc_count": pick(2, 3), "hc_lowrank": pick(32, 64),
    "ple_conv_kernel_size": pick(3, 4), "index_kpool": pick(8, 16),
    "encoder_attention_heads": pick(4, 8), "decoder_attention_heads": pick(4, 8),
    "num_encoder_attention_heads": pick(4, 8), "num_decoder_attention_heads": pick(4, 8),
    "num_encoder_layers": pick(2, 3), "decoder_num_hidden_layers": pick(2, 4),
    "encoder_num_hidden_layers": pick(2, 3), "d_kv": pick(32, 64), "num_heads": pick(4, 8),
    "max_source_positions": pick(700, 1500), "max_target_positions": pick(300, 448),
    "max_encoder_position_embeddings": pick(1024, 4096), "decoder_vocab_size": pick(None, 4000),
    "share_encoder_decoder_embeddings": pick(False), "use_prompt": pick(True),
    "use_task_id": pick(True),
    "encoder_sparse_step": pick(0, 2, 3), "decoder_sparse_step": pick(1, 2, 3),
    "num_sparse_encoder_layers": pick(0, 1, 2), "num_sparse_decoder_layers": pick(1, 2, 3),
    "embedding_size": pick(64, 128), "input_embedding_size": pick(64, 128),
    "use_sliding_window": pick(True), "max_window_layers": pick(0, 1, 2, 3),
    "mlp_only_layers": pick([0], [1, 2]), "interleave_moe_layer_step": pick(1, 2, 3),
    "no_rope_layer_interval": pick(2, 3), "intermediate_size_mlp": nearby(64),
    "dense_intermediate_size": nearby(64), "share_expert_dim": nearby(64),
    "prefix_dense_intermediate_size": nearby(64), "moe_hidden_size": nearby(64),
    "num_shared_experts": pick(0, 1, 2), "moe_num_shared_experts": pick(0, 1, 2),
    "moe_num_experts": pick(4, 8), "moe_k": pick(1, 2), "num_dense_layers": pick(0, 1, 2),
    "moe_layer_start_index": pick(0, 1, 2), "moe_layer_end_index": pick(-1, 1, 4),
    "moe_layer_interval": pick(1, 2), "global_attn_every_n_layers": pick(2, 3),
    "sliding_window_pattern": pick(2, 3), "local_attention": pick(16, 64),
    "hidden_size_per_layer_input": pick(0, 32, 64), "laurel_rank": pick(16, 32),
    "altup_num_inputs": pick(2, 3), "use_double_wide_mlp": pick(True),
    "attention_k_eq_v": pick(True), "gating": pick(False, "per-head", "per-element"),
    "n_recurrent_loops": pick(1, 2, 3), "audio_vocab_size": pick(256, 512),
    "num_codebooks": pick(3, 4), "kv_channels": pick(32, 64),
    "image_size": pick(224, 336), "patch_size": pick(14, 16),
    "num_position_embeddings": pick(576, 1024), "vision_output_dim": nearby(64),
    "vision_feature_layer": pick(-1, -2, [-1, -2, -3]), "num_global_layers": pick(1, 3),
    "num_mel_bins": pick(64, 80), "output_dim": nearby(64), "num_blocks": pick(2, 3),
    "downsample_hidden_size": pick(32, 64), "input_dim": pick(80, 160),
    "hidden_dim": pick(256, 512),
    "dim_head": pick(None, 32, 64), "feedforward_mult": pick(2, 4), "num_filters": pick(16, 32),
    "audio_merge_size": pick(2, 4),
    "embed_dim": pick(256, 512), "mlp_ratio": pick(2, 3), "mlp_dim": pick(None, 512),
    "num_patches": pick(64, 256), "num_query_tokens": pick(8, 16), "latent_query_num": pick(8, 32),
    "scale_factor": pick(2, 3), "downsample_factor": pick(1, 2), "spatial_merge_size": pick(1, 2),
    "temporal_patch_size": pick(1, 2), "out_hidden_size": pick(512, 1024),
    "projector_hidden_size": nearby(64), "alignment_intermediate_size": nearby(64),
    "projection_dim": nearby(64), "output_channels": pick(64, 128), "window_size": pick(7, 14),
    "resampler_n_latents": pick(8, 32), "resampler_depth": pick(1, 2),
    "resampler_n_heads": pick(8, 12), "resampler_head_dim": pick(32, 96),
    "additional_vocab_size": pick(0, 2), "cross_layer_interval": pick(1, 2, 4),
    "use_resampler": pick(True), "use_mask_token": pick(True), "use_mean_pooling": pick(False),
    "use_abs_pos": pick(False), "use_rel_pos": pick(False), "vision_use_head": pick(False),
    "layers": pick(2, 3), "attention_heads": pick(4, 8), "cross_attention_frequency": pick(1, 2, 3),
    "is_moe": pick(True),
    "use_parallel_residual": pick(True, False), "H_cycles": pick(1, 3), "L_cycles": pick(1, 2),
    "multi_query": pick(True, False), "new_decoder_architecture": pick(True),
    "parallel_attn": pick(True, False), "num_ln_in_parallel_attn": pick(1, 2),
    "num_kv_heads": pick(1, 2, 4), "ffn_hidden_size": nearby(64), "n_inner": pick(512, 700),
    "word_embed_proj_dim": pick(256, 512), "dff": nearby(64), "dim_ff": nearby(64),
    "n_heads": pick(4, 8), "n_layers": pick(2, 3),
    "output_vocab_size": pick(1000), "n_langs": pick(1, 3), "d_inner": nearby(64),
    "prompt_length": pick(8, 16), "prompt_types": pick(4, 8), "segment_types": pick(8, 16),
    "mem_len": pick(None, 5, 100), "intermediate_multiple_size": pick(2, 3),
}  # fmt: skip


def mutate(model_type: str, architecture: str, seed: int, share: float = 0.4) -> dict[str, Any]:
    """One config of a type; the same for the same seed."""
    rng = random.Random(f"{model_type}/{seed}")
    config: dict[str, Any] = {"model_type": model_type, "architectures": [architecture]}
    return config | _changed(model_type, rng, share)


def _changed(model_type: str, rng: random.Random, share: float) -> dict[str, Any]:
    known = defaults.of_type(model_type)
    config: dict[str, Any] = {}
    for key, old in sorted(known.values.items()):
        if key in known.sections or rng.random() > share:
            continue
        if key in CHANGES and (old is None or isinstance(old, int)):
            config[key] = CHANGES[key](rng, old)
        elif isinstance(old, bool) and ("bias" in key or "tie" in key or "norm" in key):
            config[key] = not old
    for key, section in known.sections.items():
        if section.get("type") and key != "backbone_config":
            nested = _changed(section["type"], rng, share)
            if nested:
                config[key] = {"model_type": section["type"]} | nested
    return config


def main(folder: str, count: int, kinds: list[str]) -> None:
    """Write ``count`` configs for each ``model_type:Class`` into a folder."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    for kind in kinds:
        model_type, architecture = kind.split(":")
        for seed in range(count):
            config = mutate(model_type, architecture, seed, share=(0.15, 0.4, 0.7)[seed % 3])
            path = target / f"{model_type}-{seed}.json"
            path.write_text(json.dumps(config, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
