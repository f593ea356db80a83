"""What audio-language models hide: older names, values below a section's, codecs.

Parameters are those of transformers 5.24.0, built from the same config.
"""

from __future__ import annotations

from typing import Any

import pytest

from kvplan.readers.hf_config import read_config

# What it is about: config, parameters.
CASES: dict[str, tuple[dict[str, Any], int]] = {
    "the class's values lie below a text section": (
        {
            "model_type": "voxtral",
            "architectures": ["VoxtralForConditionalGeneration"],
            "text_config": {"model_type": "llama", "num_hidden_layers": 2},
            "audio_config": {"d_model": 640, "encoder_layers": 2, "encoder_ffn_dim": 2560},
        },
        1_048_815_616,
    ),
    "heads wider than the encoder": (
        {
            "model_type": "voxtral_realtime",
            "architectures": ["VoxtralRealtimeForConditionalGeneration"],
            "text_config": {"num_hidden_layers": 2},
            "audio_config": {"num_hidden_layers": 2, "head_dim": 32},
        },
        716_243_712,
    ),
    "grouped heads of a width of their own": (
        {
            "model_type": "glmasr",
            "architectures": ["GlmAsrForConditionalGeneration"],
            "text_config": {"num_hidden_layers": 2},
            "audio_config": {"num_hidden_layers": 2, "num_key_value_heads": 4, "head_dim": 32},
        },
        282_803_712,
    ),
    "words for the Q-Former, attention in each of its layers": (
        {
            "model_type": "granite_speech",
            "architectures": ["GraniteSpeechForConditionalGeneration"],
            "window_size": 16,
            "downsample_rate": 4,
            "encoder_config": {"num_layers": 2, "dim_head": 64, "hidden_size": 512},
            "projector_config": {
                "model_type": "blip_2_qformer",
                "num_hidden_layers": 3,
                "encoder_hidden_size": 512,
                "cross_attention_frequency": 1,
                "use_qformer_text_input": True,
            },
            "text_config": {"model_type": "granite", "num_hidden_layers": 2},
        },
        594_294_954,
    ),
    "norms at two places, an adaptor of another width": (
        {
            "model_type": "fun_asr_nano",
            "architectures": ["FunAsrNanoForConditionalGeneration"],
            "tie_word_embeddings": False,
            "adaptor_config": {
                "hidden_size": 512,
                "intermediate_size": 128,
                "num_hidden_layers": 3,
                "projector_hidden_size": 300,
            },
            "audio_config": {
                "model_type": "fun_asr_nano_encoder",
                "num_mel_bins": 64,
                "num_stacked_frames": 5,
                "hidden_size": 256,
                "num_hidden_layers": 4,
                "num_timestamp_prediction_layers": 1,
                "fsmn_kernel_size": 7,
            },
            "text_config": {"model_type": "qwen3", "hidden_size": 512, "num_hidden_layers": 2},
        },
        249_098_028,
    ),
    "both norms at the same place": (
        {
            "model_type": "fun_asr_nano",
            "architectures": ["FunAsrNanoForConditionalGeneration"],
            "audio_config": {
                "model_type": "fun_asr_nano_encoder",
                "num_hidden_layers": 3,
                "num_timestamp_prediction_layers": 0,
            },
        },
        618_203_744,
    ),
    "a norm whose place is not there": (
        {
            "model_type": "fun_asr_nano",
            "architectures": ["FunAsrNanoForConditionalGeneration"],
            "audio_config": {
                "model_type": "fun_asr_nano_encoder",
                "num_hidden_layers": 3,
                "num_timestamp_prediction_layers": 20,
            },
        },
        618_203_744,
    ),
    "shortcuts, stages and no resampling of equal rates": (
        {
            "model_type": "kyutai_speech_to_text",
            "architectures": ["KyutaiSpeechToTextForConditionalGeneration"],
            "num_hidden_layers": 2,
            "audio_pad_token_id": 100,
            "codec_config": {
                "model_type": "mimi",
                "frame_rate": 12.5,
                "num_hidden_layers": 2,
                "use_conv_shortcut": True,
                "upsampling_ratios": [4, 4, 2],
                "num_residual_layers": 2,
                "vector_quantization_hidden_dimension": 512,
                "hidden_size": 512,
            },
        },
        303_906_177,
    ),
    "a codec that does not resample": (
        {
            "model_type": "kyutai_speech_to_text",
            "architectures": ["KyutaiSpeechToTextForConditionalGeneration"],
            "num_hidden_layers": 2,
            "audio_pad_token_id": 100,
            "codec_config": {"model_type": "mimi", "frame_rate": 25, "num_hidden_layers": 2},
        },
        293_916_481,
    ),
    "a codec and a diffusion head as wide as others say": (
        {
            "model_type": "vibevoice",
            "architectures": ["VibeVoiceForConditionalGeneration"],
            "text_config": {
                "model_type": "qwen2",
                "hidden_size": 896,
                "num_attention_heads": 14,
                "num_hidden_layers": 2,
                "tie_word_embeddings": True,
            },
            "audio_config": {
                "model_type": "vibevoice_acoustic_tokenizer",
                "num_filters": 16,
                "depths": [1, 2, 3],
                "downsampling_ratios": [2, 4],
                "hidden_size": 32,
            },
            "semantic_model_config": {
                "model_type": "vibevoice_acoustic_tokenizer_encoder",
                "hidden_size": 48,
            },
            "diffusion_head_config": {"num_hidden_layers": 2, "mlp_bias": True},
        },
        643_626_003,
    ),
}


@pytest.mark.parametrize(("config", "parameters"), [*CASES.values()], ids=[*CASES])
def test_parameters(config: dict[str, Any], parameters: int) -> None:
    """Text model, encoders and what joins them."""
    weights = read_config(config).weights

    assert weights is not None
    assert parameters == weights.parameters
