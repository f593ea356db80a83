"""Mixtures: older keys, patterns and lists that the frozen cases do not have.

Bytes at 300 tokens and parameters are those of transformers 5.24.0 on the same config.
"""

from __future__ import annotations

import pytest

from tests.readers.families.answers import answer

F, S = "full_attention", "sliding_attention"

CASES = [
    pytest.param(
        {"model_type": "mixtral", "num_hidden_layers": 3, "sliding_window": 64, "num_experts": 4},
        774_144,
        2_501_980_160,
        id="experts under their other name, and a window",
    ),
    pytest.param(
        {
            "model_type": "cohere2_moe",
            "num_hidden_layers": 6,
            "first_k_dense_replace": 2,
            "prefix_dense_sliding_window_pattern": 2,
            "prefix_dense_intermediate_size": 512,
            "num_shared_experts": 1,
            "num_experts": 4,
            "hidden_size": 1024,
            "num_attention_heads": 8,
            "intermediate_size": 256,
            "sliding_window": 64,
        },
        3_489_792,
        306_207_744,
        id="a pattern and a width for the dense blocks",
    ),
    pytest.param(
        {
            "model_type": "dots1",
            "num_hidden_layers": 4,
            "max_window_layers": 2,
            "sliding_window": 64,
            "n_routed_experts": 4,
            "n_shared_experts": 1,
            "num_experts_per_tok": 2,
            "first_k_dense_replace": 1,
        },
        13_381_632,
        2_184_511_104,
        id="windows behind max_window_layers",
    ),
    pytest.param(
        {
            "model_type": "ernie4_5_moe",
            "num_hidden_layers": 6,
            "moe_layer_start_index": 1,
            "moe_layer_end_index": 4,
            "moe_layer_interval": 2,
            "moe_num_experts": 4,
            "use_bias": True,
            "moe_k": 2,
        },
        3_686_400,
        878_502_408,
        id="sparse at an interval",
    ),
    pytest.param(
        {
            "model_type": "flint",
            "num_hidden_layers": 5,
            "sliding_window": 64,
            "num_experts": 4,
            "mlp_only_layers": None,
            "num_experts_per_tok": 2,
        },
        2_101_248,
        841_530_784,
        id="a null list of dense blocks means two",
    ),
    pytest.param(
        {
            "model_type": "hunyuan_v1_moe",
            "num_hidden_layers": 2,
            "num_experts": 4,
            "moe_topk": [2, 2],
            "num_key_value_heads": 8,
            "intermediate_size": 512,
            "head_dim": 128,
        },
        2_457_600,
        2_530_259_456,
        id="a list of experts drawn",
    ),
    pytest.param(
        {
            "model_type": "laguna",
            "num_hidden_layers": 3,
            "num_attention_heads_per_layer": [48, 64, 64],
            "layer_types": [F, S, S],
            "sliding_window": 64,
            "gating": "per-element",
            "num_experts": 4,
            "num_experts_per_tok": 2,
        },
        1_744_896,
        643_857_160,
        id="query heads a layer and a wide gate",
    ),
    pytest.param(
        {
            "model_type": "mimo_v2_flash",
            "num_hidden_layers": 7,
            "sliding_window_size": 64,
            "sliding_window": 64,
            "n_routed_experts": 4,
            "num_experts_per_tok": 2,
        },
        3_174_400,
        2_705_486_144,
        id="a window that does not count the token itself",
    ),
    pytest.param(
        {
            "model_type": "llama4_text",
            "num_hidden_layers": 4,
            "no_rope_layers": [0, 1, 1, 0],
            "moe_layers": [1],
            "attention_chunk_size": 64,
            "num_local_experts": 4,
        },
        2_973_696,
        3_704_816_640,
        id="chunks where positions rotate; sparse blocks by place",
    ),
    pytest.param(
        {
            "model_type": "llama4_text",
            "num_hidden_layers": 4,
            "attention_chunk_size": None,
            "interleave_moe_layer_step": 2,
            "num_local_experts": 4,
        },
        4_915_200,
        4_082_324_480,
        id="no chunks; sparse at an interval",
    ),
    pytest.param(
        {
            "model_type": "minimax_m3_vl_text",
            "num_hidden_layers": 3,
            "moe_layer_freq": [0, 1, 1],
            "sparse_attention_config": {
                "sparse_attention_freq": [0, 1, 1],
                "sparse_index_dim": 64,
                "sparse_num_index_heads": 2,
            },
            "num_local_experts": 4,
        },
        1_920_000,
        3_574_426_624,
        id="an indexer under older keys",
    ),
]


@pytest.mark.parametrize(("config", "at_300_tokens", "parameters"), CASES)
def test_as_transformers(config: dict[str, object], at_300_tokens: int, parameters: int) -> None:
    """The cache and the parameters of transformers."""
    assert (at_300_tokens, parameters) == answer(config, tokens=300)
