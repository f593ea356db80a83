"""What composites of text and image hide: older names, flat files, whose word ties the head.

Bytes at 300 tokens and parameters are those of transformers 5.24.0 on the same config; where it
could build a model but not run it on a text alone, only the parameters are compared.
"""

from __future__ import annotations

from typing import Any

import pytest

from kvplan.core.formats import FORMATS
from kvplan.readers.families.base import Options
from kvplan.readers.hf_config import read_config

SIZES = {
    "num_hidden_layers": 2,
    "hidden_size": 256,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "intermediate_size": 300,
    "vocab_size": 1000,
}
VISION = {
    "num_hidden_layers": 2,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "intermediate_size": 128,
}

# What it is about: config, bytes at 300 tokens (None where not measured), parameters.
CASES: dict[str, tuple[dict[str, Any], int | None, int]] = {
    "sections whose types are another's name": (
        {
            "model_type": "idefics2",
            "text_config": SIZES | {"model_type": "mistral"},
            "vision_config": VISION | {"model_type": "idefics2"},
            "perceiver_config": {"model_type": "idefics2", "resampler_depth": 2},
        },
        153_600,
        5_240_960,
    ),
    "a resampler, gates as wide as the model, words added": (
        {
            "model_type": "idefics",
            "use_resampler": True,
            "alpha_type": "vector",
            "additional_vocab_size": 5,
            "qk_layer_norms": True,
            "cross_layer_interval": 2,
            **SIZES,
            "num_hidden_layers": 5,
            "vision_config": VISION | {"embed_dim": 64},
            "perceiver_config": {"resampler_depth": 2},
        },
        None,
        4_749_056,
    ),
    "a flat file": ({"model_type": "fuyu"} | SIZES, 614_400, 2_040_920),
    "a flat file whose text class ties": (
        {
            "model_type": "hunyuan_vl",
            "tie_word_embeddings": False,
            "attention_head_dim": 32,
            **SIZES,
            "vision_config": VISION,
        },
        None,
        2_343_744,
    ),
    "an older name of tying": (
        {
            "model_type": "lfm2_vl",
            "tie_embedding": False,
            "projector_use_layernorm": False,
            "text_config": SIZES
            | {"model_type": "lfm2", "layer_types": ["conv", "full_attention"]},
            "vision_config": VISION | {"vision_use_head": False},
        },
        78_336,
        2_779_520,
    ),
    "an older type of the text section": (
        {
            "model_type": "kimi_k25",
            "text_config": SIZES
            | {
                "model_type": "kimi_k2",
                "num_key_value_heads": 8,
                "n_routed_experts": 4,
                "moe_intermediate_size": 64,
            },
            "vision_config": VISION | {"merge_kernel_size": [2, 3]},
        },
        691_200,
        9_759_168,
    ),
    "a type that nobody knows in a section of one class": (
        {
            "model_type": "aria",
            "projector_patch_to_query_dict": {"100": 64, "400": 96},
            "text_config": SIZES | {"model_type": "aria_moe_lm"},
            "vision_config": VISION | {"model_type": "idefics3_vision"},
        },
        153_600,
        5_841_472,
    ),
    "the text model alone": (
        {
            "model_type": "gemma3",
            "architectures": ["Gemma3ForCausalLM"],
            "text_config": SIZES | {"sliding_window": 32, "head_dim": 32},
        },
        15_872,
        1_046_912,
    ),
    "images and sound": (
        {
            "model_type": "gemma4",
            "text_config": SIZES | {"vocab_size_per_layer_input": 1000, "head_dim": 32},
            "audio_config": {
                "hidden_size": 64,
                "num_attention_heads": 4,
                "num_hidden_layers": 2,
                "subsampling_conv_channels": [64, 16],
                "output_proj_dims": 96,
            },
            "vision_config": VISION | {"head_dim": 8, "num_key_value_heads": 2},
        },
        1_305_600,
        6_105_200,
    ),
    "a Q-Former before a decoder of another kind": (
        {
            "model_type": "blip-2",
            "text_config": SIZES | {"model_type": "llama"},
            "vision_config": VISION | {"qkv_bias": False},
            "qformer_config": {
                "num_hidden_layers": 5,
                "cross_attention_frequency": 3,
                "use_qformer_text_input": True,
            },
        },
        153_600,
        63_269_952,
    ),
    "one number for both sides of an image": (
        {
            "model_type": "internvl",
            "text_config": SIZES | {"model_type": "qwen3"},
            "vision_config": VISION
            | {
                "image_size": 224,
                "patch_size": 14,
                "norm_type": "rms_norm",
                "attention_bias": True,
                "use_qk_norm": True,
                "use_mean_pooling": False,
            },
        },
        614_400,
        2_282_944,
    ),
    "a tokenizer without attention": (
        {
            "model_type": "chameleon",
            "swin_norm": True,
            **SIZES,
            "vq_config": {"attn_type": "none", "attn_resolutions": [256], "base_channels": 32},
        },
        153_600,
        5_392_192,
    ),
    "a tokenizer with a decoder and twice the latents": (
        {
            "model_type": "janus",
            "text_config": SIZES,
            "vision_config": VISION
            | {"depth": 3, "use_qk_norm": True, "mlp_ratio": 3.0, "attention_bias": False},
            "vq_config": {
                "double_latent": True,
                "channel_multiplier": [1, 2, 2],
                "num_res_blocks": 1,
                "num_hidden_layers": 3,
                "base_channels": 32,
            },
        },
        153_600,
        57_626_923,
    ),
    "Q-Formers over windows": (
        {
            "model_type": "granite4_vision",
            "downsample_rate": "4/8",
            "deepstack_layer_map": [[-2, 0], [-1, 1]],
            "text_config": SIZES,
            "vision_config": VISION | {"model_type": "siglip_vision_model"},
        },
        153_600,
        4_176_448,
    ),
    "an encoder and a decoder that share nothing": (
        {
            "model_type": "diffusion_gemma",
            "tie_word_embeddings": False,
            "text_config": SIZES
            | {
                "num_hidden_layers": 7,
                "head_dim": 32,
                "moe_intermediate_size": 64,
                "num_experts": 8,
                "top_k_experts": 2,
            },
            "vision_config": VISION | {"head_dim": 16, "num_key_value_heads": 4},
        },
        2_841_600,
        22_326_320,
    ),
    "patches folded prime by prime": (
        {
            "model_type": "inkling_mm_model",
            "text_config": SIZES
            | {
                "n_routed_experts": 4,
                "moe_intermediate_size": 32,
                "swa_num_attention_heads": 8,
                "swa_num_key_value_heads": 2,
            },
            "vision_config": {
                "n_layers": 7,
                "patch_size": 12,
                "temporal_patch_size": 4,
                "num_channels": 1,
            },
        },
        None,
        24_060_356,
    ),
}
MEASURED = {name: row for name, row in CASES.items() if row[1] is not None}


@pytest.mark.parametrize(("config", "kept"), [r[:2] for r in MEASURED.values()], ids=[*MEASURED])
def test_bytes_are_the_text_models(config: dict[str, Any], kept: int) -> None:
    """Encoders of images and sound keep nothing."""
    assert kept == read_config(config).curve(FORMATS["bf16"]).bytes(300)


@pytest.mark.parametrize(
    ("config", "parameters"), [(r[0], r[2]) for r in CASES.values()], ids=[*CASES]
)
def test_parameters(config: dict[str, Any], parameters: int) -> None:
    """Text model, encoders and what joins them."""
    weights = read_config(config).weights

    assert weights is not None
    assert parameters == weights.parameters


def test_an_encoder_without_a_shape_leaves_the_cache_known() -> None:
    """A timm encoder is a name: the cache is answered, the parameters are not."""
    model = read_config({"model_type": "fast_vlm", "text_config": SIZES | {"model_type": "qwen2"}})

    assert model.weights is None
    assert [warning.partition(": ")[2] for warning in model.warnings] == [
        "the config gives no shape of its vision_config (fastvit_mci3)."
    ]
    assert model.curve(FORMATS["bf16"]).bytes(300) == 153_600


def test_an_images_patches_are_kept_where_they_are_counted() -> None:
    """BLIP's text decoder keeps keys and values of the patches it reads, in each block once."""
    config = {"model_type": "blip", "text_config": {"num_hidden_layers": 2}}
    without, beside = (
        read_config(config, options=Options(encoder_tokens=patches)).curve(FORMATS["bf16"])
        for patches in (None, 577)
    )

    assert beside.bytes(10) - without.bytes(10) == 2 * 577 * 2 * 768 * 2
