"""What models with several encoders hide: switched parts, older names, talkers.

Parameters are those of transformers 5.24.0, built from the same config.
"""

from __future__ import annotations

from typing import Any

import pytest

from kvplan.readers.hf_config import read_config

# What it is about: config, parameters.
CASES: dict[str, tuple[dict[str, Any], int]] = {
    "gated networks in the tower, a coarser square": (
        {
            "model_type": "nemotron_h_omni",
            "architectures": ["NemotronH_Omni_Reasoning_V3"],
            "projector_hidden_size": 512,
            "vision_hidden_size": 768,
            "downsample_ratio": 0.25,
            "vision_config": {
                "model_type": "radio",
                "hidden_size": 768,
                "num_hidden_layers": 3,
                "video_temporal_patch_size": 2,
                "use_swiglu_ffn": True,
                "qkv_bias": False,
            },
            "text_config": {
                "model_type": "nemotron_h",
                "hidden_size": 512,
                "num_hidden_layers": 4,
                "hybrid_override_pattern": "M*M-",
            },
        },
        231_187_200,
    ),
    "older names of every section, and speech": (
        {
            "model_type": "nemotron_h_omni",
            "architectures": ["NemotronH_Omni_Reasoning_V3"],
            "vit_hidden_size": 768,
            "vision_config": {
                "model_type": "radio",
                "hidden_size": 768,
                "num_hidden_layers": 3,
                "video_temporal_patch_size": 2,
                "num_registers": 2,
            },
            "llm_config": {
                "model_type": "nemotron_h",
                "hidden_size": 512,
                "hybrid_override_pattern": "M*M-",
                "tie_word_embeddings": True,
            },
            "sound_config": {
                "model_type": "parakeet_encoder",
                "hidden_size": 512,
                "num_hidden_layers": 2,
                "projection_hidden_size": 256,
                "projection_bias": True,
            },
        },
        262_017_536,
    ),
    "features and frames halved as often as it takes": (
        {
            "model_type": "phi4_multimodal",
            "architectures": ["Phi4MultimodalForCausalLM"],
            "num_hidden_layers": 2,
            "audio_config": {
                "num_blocks": 2,
                "time_reduction": 4,
                "bias_symmetric": True,
                "depthwise_multiplier": 2,
                "input_size": 81,
            },
            "vision_config": {"num_hidden_layers": 2},
        },
        1_574_059_632,
    ),
    "levels of waveform patches": (
        {
            "model_type": "muse_spark",
            "architectures": ["MuseSparkForConditionalGeneration"],
            "text_config": {
                "hidden_size": 1024,
                "num_attention_heads": 16,
                "num_hidden_layers": 2,
                "num_local_experts": 2,
            },
            "audio_config": {
                "hidden_sizes": [32, 64],
                "depths": [1, 2],
                "patch_sizes": [8, 4],
                "num_hidden_layers": 2,
                "out_hidden_size": 1024,
                "mlp_ratio": 2.5,
            },
        },
        2_541_317_072,
    ),
    "a talker of experts, a predictor of codes, a vocoder": (
        {
            "model_type": "qwen3_omni_moe",
            "architectures": ["Qwen3OmniMoeForConditionalGeneration"],
            "thinker_config": {
                "tie_word_embeddings": True,
                "text_config": {"num_hidden_layers": 2, "num_experts": 4, "vocab_size": 1000},
                "vision_config": {"depth": 2},
                "audio_config": {"encoder_layers": 2},
            },
            "talker_config": {
                "accept_hidden_layer": 1,
                "thinker_hidden_size": 2048,
                "spatial_merge_size": 2,
                "text_config": {
                    "num_hidden_layers": 2,
                    "num_experts": 4,
                    "shared_expert_intermediate_size": 768,
                    "decoder_sparse_step": 2,
                    "mlp_only_layers": [0],
                    "attention_bias": True,
                },
                "code_predictor_config": {"num_hidden_layers": 2, "num_code_groups": 5},
            },
            "code2wav_config": {
                "num_hidden_layers": 2,
                "upsample_rates": [4, 2],
                "decoder_dim": 256,
                "num_quantizers": 4,
                "upsampling_ratios": [2, 3],
            },
        },
        450_850_885,
    ),
    "a talker that is switched off": (
        {
            "model_type": "qwen3_omni_moe",
            "architectures": ["Qwen3OmniMoeForConditionalGeneration"],
            "enable_audio_output": False,
            "thinker_config": {
                "text_config": {"num_hidden_layers": 2, "num_experts": 4, "vocab_size": 1000}
            },
        },
        1_277_852_052,
    ),
    "every size of the talker and the vocoder": (
        {
            "model_type": "qwen2_5_omni",
            "architectures": ["Qwen2_5OmniForConditionalGeneration"],
            "thinker_config": {"text_config": {"num_hidden_layers": 2}},
            "talker_config": {
                "num_hidden_layers": 2,
                "hidden_size": 896,
                "num_attention_heads": 12,
                "num_key_value_heads": 4,
                "embedding_size": 2048,
            },
            "token2wav_config": {
                "dit_config": {
                    "num_hidden_layers": 2,
                    "enc_channels": [64, 64, 128, 128],
                    "enc_kernel_sizes": [5, 3, 3, 1],
                    "enc_dilations": [1, 2, 3, 1],
                    "head_dim": 32,
                    "ff_mult": 3,
                    "enc_res2net_scale": 4,
                },
                "bigvgan_config": {
                    "upsample_initial_channel": 512,
                    "upsample_rates": [5, 3],
                    "upsample_kernel_sizes": [11, 7],
                    "resblock_kernel_sizes": [3, 7],
                },
            },
        },
        5_459_762_336,
    ),
    "a talker that is switched off, with a dense thinker": (
        {
            "model_type": "qwen2_5_omni",
            "architectures": ["Qwen2_5OmniForConditionalGeneration"],
            "enable_audio_output": False,
            "thinker_config": {"text_config": {"num_hidden_layers": 2}},
        },
        5_278_786_304,
    ),
}


@pytest.mark.parametrize(("config", "parameters"), [*CASES.values()], ids=[*CASES])
def test_parameters(config: dict[str, Any], parameters: int) -> None:
    """Text model, encoders and what joins them."""
    weights = read_config(config).weights

    assert weights is not None
    assert parameters == weights.parameters
