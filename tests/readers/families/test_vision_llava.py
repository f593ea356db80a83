"""What LLaVA, Qwen, Llama, Mistral and models that read documents hide.

Parameters are those of transformers 5.24.0, built from the same config.
"""

from __future__ import annotations

from typing import Any

import pytest

from kvplan.core.formats import FORMATS
from kvplan.readers.families.base import Options
from kvplan.readers.hf_config import read_config

# What it is about: config, parameters.
CASES: dict[str, tuple[dict[str, Any], int]] = {
    "two layers of the tower side by side, a text section that ties": (
        {
            "model_type": "llava",
            "architectures": ["LlavaForConditionalGeneration"],
            "vision_feature_layer": [-2, -4],
            "multimodal_projector_bias": False,
            "text_config": {
                "model_type": "qwen2",
                "num_hidden_layers": 2,
                "tie_word_embeddings": True,
            },
            "vision_config": {"model_type": "siglip_vision_model", "vision_use_head": False},
        },
        1_406_523_648,
    ),
    "a section in the file hides the class's values for it": (
        {
            "model_type": "llava",
            "architectures": ["LlavaForConditionalGeneration"],
            "text_config": {"model_type": "llama", "num_hidden_layers": 2},
            "vision_config": {"model_type": "clip_vision_model"},
        },
        774_301_952,
    ),
    "another tower and another text model": (
        {
            "model_type": "llava",
            "architectures": ["LlavaForConditionalGeneration"],
            "text_config": {"num_hidden_layers": 2, "model_type": "mistral"},
            "vision_config": {"model_type": "pixtral", "num_hidden_layers": 3},
        },
        770_477_056,
    ),
    "frames pooled by a convolution": (
        {
            "model_type": "llava_next_video",
            "architectures": ["LlavaNextVideoForConditionalGeneration"],
            "spatial_pool_mode": "conv",
            "spatial_pool_stride": 3,
            "text_config": {"num_hidden_layers": 2},
        },
        1_000_844_288,
    ),
    "the text section's word on tying does not count": (
        {
            "model_type": "llava_next",
            "architectures": ["LlavaNextForConditionalGeneration"],
            "text_config": {
                "num_hidden_layers": 2,
                "model_type": "mistral",
                "tie_word_embeddings": True,
            },
        },
        1_022_863_360,
    ),
    "the older name of the list of layers": (
        {
            "model_type": "vipllava",
            "architectures": ["VipLlavaForConditionalGeneration"],
            "vision_feature_layers": [-2, -5],
            "text_config": {"num_hidden_layers": 2},
        },
        995_600_384,
    ),
    "a projection that is not the text's width": (
        {
            "model_type": "paligemma",
            "architectures": ["PaliGemmaForConditionalGeneration"],
            "projection_dim": 2304,
            "text_config": {"model_type": "gemma2", "hidden_size": 2304, "num_hidden_layers": 4},
            "vision_config": {
                "model_type": "siglip_vision_model",
                "num_hidden_layers": 2,
                "projection_dim": 2048,
            },
        },
        925_067_520,
    ),
    "Mistral 3 untied": (
        {
            "model_type": "mistral3",
            "architectures": ["Mistral3ForConditionalGeneration"],
            "tie_word_embeddings": False,
            "text_config": {"model_type": "ministral3", "num_hidden_layers": 2},
            "vision_config": {"model_type": "pixtral", "num_hidden_layers": 2},
        },
        1_569_482_752,
    ),
    "a text model that brings its own head": (
        {
            "model_type": "llama4",
            "architectures": ["Llama4ForConditionalGeneration"],
            "text_config": {
                "num_hidden_layers": 2,
                "tie_word_embeddings": True,
                "num_local_experts": 2,
            },
        },
        2_370_513_920,
    ),
    "the text model alone of a whole config": (
        {
            "model_type": "llama4",
            "architectures": ["Llama4ForCausalLM"],
            "text_config": {
                "num_hidden_layers": 3,
                "interleave_moe_layer_step": 2,
                "num_local_experts": 2,
            },
        },
        3_138_565_120,
    ),
    "tiles and places of cross-attention, never tied": (
        {
            "model_type": "mllama",
            "architectures": ["MllamaForConditionalGeneration"],
            "text_config": {
                "num_hidden_layers": 6,
                "cross_attention_layers": [1, 4],
                "tie_word_embeddings": True,
            },
            "vision_config": {
                "num_hidden_layers": 2,
                "supported_aspect_ratios": [[1, 1], [1, 2]],
                "max_num_tiles": 2,
            },
        },
        2_597_525_527,
    ),
    "a flat file whose head is tied": (
        {
            "model_type": "qwen2_vl",
            "architectures": ["Qwen2VLForConditionalGeneration"],
            "hidden_size": 1024,
            "num_hidden_layers": 2,
            "num_attention_heads": 8,
            "num_key_value_heads": 2,
            "intermediate_size": 2000,
            "vocab_size": 5000,
            "tie_word_embeddings": True,
            "vision_config": {"depth": 2, "embed_dim": 640, "hidden_size": 1024, "mlp_ratio": 4},
        },
        42_438_656,
    ),
    "a flat file, and a tower under the type's own name": (
        {
            "model_type": "qwen2_5_vl",
            "architectures": ["Qwen2_5_VLForConditionalGeneration"],
            "hidden_size": 1024,
            "num_hidden_layers": 2,
            "num_attention_heads": 8,
            "num_key_value_heads": 2,
            "intermediate_size": 2000,
            "vocab_size": 5000,
            "vision_config": {
                "model_type": "qwen2_5_vl",
                "depth": 2,
                "hidden_size": 640,
                "out_hidden_size": 1024,
            },
        },
        54_143_216,
    ),
    "the enclosing config unties; one deep merger": (
        {
            "model_type": "qwen3_vl",
            "architectures": ["Qwen3VLForConditionalGeneration"],
            "tie_word_embeddings": False,
            "text_config": {"num_hidden_layers": 2, "tie_word_embeddings": True},
            "vision_config": {"model_type": "qwen3_vl", "deepstack_visual_indexes": [1]},
        },
        2_411_380_464,
    ),
    "the text class decides by its own section": (
        {
            "model_type": "qwen3_5",
            "architectures": ["Qwen3_5ForCausalLM"],
            "text_config": {"num_hidden_layers": 2, "tie_word_embeddings": True},
        },
        1_453_937_024,
    ),
    "deep mergers are not built": (
        {
            "model_type": "qwen3_5_moe",
            "architectures": ["Qwen3_5MoeForConditionalGeneration"],
            "tie_word_embeddings": True,
            "text_config": {"num_hidden_layers": 2, "num_experts": 2},
            "vision_config": {"model_type": "qwen3_5_moe", "deepstack_visual_indexes": [1, 2]},
        },
        1_048_543_856,
    ),
    "a flat file whose text class ties": (
        {
            "model_type": "paddleocr_vl",
            "architectures": ["PaddleOCRVLForConditionalGeneration"],
            "hidden_size": 512,
            "num_hidden_layers": 2,
            "use_bias": True,
            "vocab_size": 5000,
            "tie_word_embeddings": False,
            "vision_config": {"num_hidden_layers": 2, "spatial_merge_size": 1},
        },
        50_658_336,
    ),
    "a language_config with its window outside": (
        {
            "model_type": "unlimited_ocr",
            "architectures": ["UnlimitedOcrForConditionalGeneration"],
            "sliding_window": 64,
            "language_config": {
                "num_hidden_layers": 4,
                "first_k_dense_replace": 2,
                "n_shared_experts": 1,
                "attention_bias": True,
                "mlp_bias": True,
                "head_dim": 999,
            },
        },
        1_258_049_024,
    ),
    "networks named one by one": (
        {
            "model_type": "unlimited_ocr",
            "architectures": ["UnlimitedOcrForConditionalGeneration"],
            "text_config": {
                "num_hidden_layers": 3,
                "mlp_layer_types": ["sparse", "dense", "sparse"],
                "n_routed_experts": 8,
            },
        },
        846_526_208,
    ),
    "two mergers, windows that are not square": (
        {
            "model_type": "minicpmv4_6",
            "architectures": ["MiniCPMV4_6ForConditionalGeneration"],
            "merger_times": 2,
            "vision_config": {"num_hidden_layers": 2, "window_kernel_size": [3, 2]},
            "text_config": {"model_type": "qwen3_5_text", "num_hidden_layers": 2},
        },
        2_621_296_768,
    ),
    "older names, negative layers, a cut tower": (
        {
            "model_type": "molmo2",
            "architectures": ["Molmo2ForConditionalGeneration"],
            "vit_config": {
                "model_type": "molmo2",
                "hidden_size": 512,
                "num_hidden_layers": 10,
                "image_default_input_size": [364, 280],
                "image_patch_size": 14,
                "num_attention_heads": 8,
                "num_key_value_heads": 4,
                "head_dim": 64,
            },
            "adapter_config": {
                "vit_layers": [-3, -5, 2],
                "hidden_size": 512,
                "mlp_bias": True,
                "attention_bias": False,
            },
            "text_config": {
                "model_type": "molmo2_text",
                "num_hidden_layers": 2,
                "qk_norm_type": "olmo",
                "qkv_bias": True,
                "additional_vocab_size": 64,
            },
        },
        1_766_255_744,
    ),
    "positions that are counted": (
        {
            "model_type": "molmo2",
            "architectures": ["Molmo2ForConditionalGeneration"],
            "vision_config": {"num_hidden_layers": 30, "image_num_pos": 100},
            "text_config": {"num_hidden_layers": 2},
        },
        2_209_896_416,
    ),
    "a head of the enclosing config's size": (
        {
            "model_type": "ovis2",
            "architectures": ["Ovis2ForConditionalGeneration"],
            "tie_word_embeddings": False,
            "hidden_size": 512,
            "vocab_size": 1000,
            "text_config": {
                "model_type": "qwen2",
                "hidden_size": 512,
                "num_attention_heads": 8,
                "num_hidden_layers": 2,
                "vocab_size": 1000,
            },
            "vision_config": {
                "num_hidden_layers": 2,
                "hidden_stride": 2,
                "qkv_bias": True,
                "mlp_bias": True,
            },
        },
        176_004_598,
    ),
    "the text model alone, tied by its section": (
        {
            "model_type": "minimax_m3_vl",
            "architectures": ["MiniMaxM3VLForCausalLM"],
            "text_config": {
                "num_hidden_layers": 2,
                "num_local_experts": 4,
                "tie_word_embeddings": True,
            },
        },
        2_009_414_144,
    ),
    "two decoders over one cache": (
        {
            "model_type": "pi0",
            "architectures": ["PI0ForConditionalGeneration"],
            "vlm_config": {
                "model_type": "paligemma",
                "text_config": {"model_type": "gemma", "num_hidden_layers": 2, "vocab_size": 1000},
                "vision_config": {"model_type": "siglip_vision_model", "num_hidden_layers": 2},
            },
            "dit_config": {"model_type": "gemma", "hidden_size": 512, "num_hidden_layers": 2},
            "max_state_dim": 7,
            "max_action_dim": 9,
        },
        673_906_441,
    ),
}


@pytest.mark.parametrize(("config", "parameters"), [*CASES.values()], ids=[*CASES])
def test_parameters(config: dict[str, Any], parameters: int) -> None:
    """Text model, encoders and what joins them."""
    weights = read_config(config).weights

    assert weights is not None
    assert parameters == weights.parameters


def test_the_images_tokens_are_kept_in_the_layers_that_read_them() -> None:
    """Llama 3.2 keeps nothing there without an image, and with one its keys and values."""
    config = {"model_type": "mllama", "text_config": {"cross_attention_layers": [3, 8]}}
    without, beside = (
        read_config(config, options=Options(encoder_tokens=tokens)).curve(FORMATS["bf16"])
        for tokens in (None, 1601)
    )

    assert beside.bytes(10) - without.bytes(10) == 2 * 1601 * 2 * 8 * 128 * 2


def test_published_code_leaves_the_cache_known() -> None:
    """The cache of dots.ocr is that of its text model; the parameters are not counted."""
    sizes = {"num_hidden_layers": 2, "hidden_size": 256, "num_attention_heads": 8}
    model = read_config({"model_type": "dots_ocr", "num_key_value_heads": 2} | sizes)

    assert model.weights is None
    assert model.curve(FORMATS["bf16"]).bytes(300) == 2 * 300 * 2 * 2 * 32 * 2


def test_a_timm_encoder_leaves_the_cache_known() -> None:
    """Perception LM's encoder is a name, with or without the width it puts out."""
    text = {"model_type": "llama", "num_hidden_layers": 2}
    model = read_config({"model_type": "perception_lm", "text_config": text})

    assert model.weights is None
    assert model.curve(FORMATS["bf16"]).bytes(300) == 2 * 300 * 2 * 4096 * 2
