"""What latent and compressed attention keep where a config uses an older or rarer key.

The figures are those of transformers 5.24.0: the bytes of the cache that the model returns after 40
tokens in bfloat16, and the number of its parameters.
"""

from __future__ import annotations

from typing import Any

import pytest

from kvplan.core.errors import BadFile
from kvplan.core.formats import FORMATS
from kvplan.core.model import Model
from kvplan.readers.hf_config import read_config

SMALL = {"vocab_size": 512, "hidden_size": 512, "moe_intermediate_size": 64}
FEW = {"n_routed_experts": 32}
V41 = {
    "num_attention_heads": 4,
    "q_lora_rank": 64,
    "o_groups": 2,
    "o_lora_rank": 64,
    "index_head_dim": 128,
    "index_n_heads": 4,
    "num_experts_per_tok": 2,
    "hc_mult": 4,
}

# Type, layers, keys, bytes of 40 tokens, parameters.
CASES: list[tuple[str, int, dict[str, Any], int, int]] = [
    ("glm_moe_dsa", 7, {"index_topk_freq": 3}, 353280, 501393152),
    ("glm_moe_dsa", 7, {"index_topk_freq": 4, "index_skip_topk_offset": 3}, 363520, 509863936),
    ("glm_moe_dsa", 7, {"index_topk_pattern": "FSSFSFS"}, 353280, 501393152),
    (
        "glm_moe_dsa",
        7,
        {"index_topk_pattern": ["full", "shared", "shared", "full", "shared", "shared", "full"]},
        353280,
        501393152,
    ),
    (
        "glm_moe_dsa",
        7,
        {
            "layer_types": [
                "deepseek_sparse_attention",
                "deepseek_sparse_attention",
                "deepseek_sparse_attention",
                "deepseek_sparse_attention",
                "deepseek_sparse_attention",
                "deepseek_sparse_attention",
                "deepseek_sparse_attention",
            ],
            "num_experts": 32,
        },
        394240,
        535276288,
    ),
    ("deepseek_v32", 4, {"num_experts": 32, "first_k_dense_replace": 0}, 225280, 320288256),
    ("axk1", 5, {"moe_layer_freq": 2, "first_k_dense_replace": 0}, 230400, 229639168),
    ("axk2", 5, {"first_k_dense_replace": 2}, 115200, 59393280),
    ("glm4_moe_lite", 5, {"first_k_dense_replace": 3}, 230400, 88452864),
    (
        "sarvam_mla",
        3,
        {"num_experts": 32, "num_shared_experts": 2, "head_dim": 576},
        138240,
        89920512,
    ),
    (
        "deepseek_v2",
        3,
        {"sliding_window": 16, "num_experts": 4, "num_experts_per_tok": 2},
        51840,
        52739584,
    ),
    (
        "deepseek_v2",
        4,
        {
            "layer_types": [
                "full_attention",
                "sliding_attention",
                "full_attention",
                "sliding_attention",
            ],
            "sliding_window": 16,
            "num_experts_per_tok": 2,
        },
        126720,
        81211904,
    ),
    (
        "deepseek_v2",
        3,
        {"mlp_bias": True, "n_shared_experts": 0, "num_experts_per_tok": 2},
        138240,
        60451840,
    ),
    ("dots3_note_text", 7, {"pad_token_id": 1, "sliding_window_size": 16}, 330240, 406246592),
    ("dots3_note_text", 7, {"pad_token_id": 1, "use_dsa": False}, 486400, 380785088),
    (
        "dots3_note_text",
        7,
        {
            "pad_token_id": 1,
            "swa_kv_lora_rank": 256,
            "swa_head_dim": 128,
            "swa_qk_nope_head_dim": 96,
        },
        291840,
        301844544,
    ),
    (
        "dots3_note_text",
        7,
        {"pad_token_id": 1, "moe_layer_freq": [0, 1, 0, 1, 1, 0, 1], "first_k_dense_replace": 0},
        547840,
        437671104,
    ),
    (
        "dots3_note_text",
        7,
        {
            "pad_token_id": 1,
            "layer_types": [
                "full_attention",
                "sliding_attention",
                "full_attention",
                "sliding_attention",
                "full_attention",
                "sliding_attention",
                "full_attention",
            ],
        },
        527360,
        422892480,
    ),
    (
        "deepseek_v4",
        5,
        {
            "compress_ratios": [0, 0, 4, 128, 4, 0],
            "n_routed_experts": 8,
            "moe_intermediate_size": 64,
        },
        424960,
        385996115,
    ),
    (
        "deepseek_v4",
        5,
        {
            "compress_rate_csa": 8,
            "compress_rate_hca": 16,
            "n_routed_experts": 8,
            "moe_intermediate_size": 64,
        },
        315648,
        377805011,
    ),
    (
        "deepseek_v4",
        5,
        {
            "compress_rates": {
                "compressed_sparse_attention": 2,
                "heavily_compressed_attention": 16,
            },
            "n_routed_experts": 8,
            "moe_intermediate_size": 64,
        },
        311808,
        377797331,
    ),
    (
        "deepseek_v4",
        5,
        {"sliding_window": 8, "n_routed_experts": 8, "moe_intermediate_size": 64},
        391680,
        378029267,
    ),
    (
        "deepseek_v4",
        5,
        {"moe_intermediate_size": 96, "n_routed_experts": 4, "num_local_experts": 8},
        560640,
        380241107,
    ),
]


def model(model_type: str, layers: int, **keys: Any) -> Model:
    few = {} if "num_experts" in keys else FEW
    return read_config(SMALL | few | {"model_type": model_type, "num_hidden_layers": layers} | keys)


@pytest.mark.parametrize(("model_type", "layers", "keys", "kept", "counted"), CASES)
def test_a_key_changes_what_it_changes_in_transformers(
    model_type: str, layers: int, keys: dict[str, Any], kept: int, counted: int
) -> None:
    """Bytes and parameters with a key that few files have."""
    found = model(model_type, layers, **keys)
    assert found.weights is not None

    assert (kept, counted) == (
        found.curve(FORMATS["bf16"]).bytes(40),
        found.weights.parameters,
    )


REFUSALS = [
    ("deepseek_v4", {"compress_ratios": [0, 0, 8]}, "compress_ratios has 8"),
    ("deepseek_v4", {"layer_types": ["sliding_attention"]}, "layer_types names 1 layers"),
    ("glm_moe_dsa", {"index_topk_pattern": "FSX"}, "not 3 letters F or S"),
    ("glm_moe_dsa", {"indexer_types": ["full", "half", "full"]}, "'half'"),
    ("mistral_large4_text", {"kv_source_layers": [0, 2, 2]}, "layer 1 read layer 2"),
    ("mistral_large4_text", {"no_rope_layers": [1]}, "no_rope_layers has 1 entries"),
    ("deepseek_v41_text", {"compress_ratios": [0, 0]}, "compress_ratios has 2 of 3 layers"),
]


@pytest.mark.parametrize(("model_type", "keys", "said"), REFUSALS)
def test_a_list_that_does_not_fit_is_named(
    model_type: str, keys: dict[str, Any], said: str
) -> None:
    """The sentence names the key and what is wrong with it."""
    with pytest.raises(BadFile, match=said):
        model(model_type, 3, **keys)


def test_the_first_code_of_deepseek_is_dense_without_experts() -> None:
    """``n_routed_experts`` of null: the remote code's reading; transformers refuses such a file."""
    found = model("deepseek_v2", 2, n_routed_experts=None)
    assert found.weights is not None

    assert found.weights.parameters == found.weights.active_parameters


def test_entries_of_deepseek_v41_are_kept_by_their_sources() -> None:
    """Windows of 7 tokens in 4 layers, entries of 512 + 128 elements in two, one token waiting."""
    found = model(
        "deepseek_v41_text",
        4,
        head_dim=512,
        sliding_window=8,
        compress_ratios=[0, 2, 1, 1, 0],
        kv_source_layer_ids=[1, 2],
        index_source_layer_ids=[1, 2, 3],
        **V41,
    )

    assert 4 * 7 * 512 * 2 + (20 + 41) * (512 + 128) * 2 + 512 * 2 * 2 == found.curve(
        FORMATS["bf16"]
    ).bytes(41)


def test_dots_vlm_keeps_what_deepseek_keeps() -> None:
    """Its keys are those of DeepSeek V3, its encoder published code (SGLang, dots_vlm.py)."""
    model = read_config({"model_type": "dots_vlm", "vision_config": {"embed_dim": 1536}})

    assert 61 * (512 + 64) * 2 == model.curve(FORMATS["bf16"]).per_token
    assert model.weights is None


def test_kimi_vl_without_its_encoder() -> None:
    """A copy with the language model's keys alone is sized, and what is left out is said."""
    text = {"model_type": "deepseek_v3", "num_hidden_layers": 27, "hidden_size": 2048}
    model = read_config({"model_type": "kimi_vl", "text_config": text})

    assert 27 * (512 + 64) * 2 == model.curve(FORMATS["bf16"]).per_token
    assert "the config has no vision_config" in model.warnings[0]
