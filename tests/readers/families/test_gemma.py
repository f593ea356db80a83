"""Gemma's patterns, shared caches and saved files.

Bytes at 300 tokens and parameters are those of transformers 5.24.0 on the same config.
"""

from __future__ import annotations

import pytest

from tests.readers.families.answers import answer

F, S = "full_attention", "sliding_attention"

CASES = [
    pytest.param(
        {
            "model_type": "gemma3_text",
            "num_hidden_layers": 5,
            "sliding_window": 64,
            "sliding_window_pattern": 2,
        },
        3_231_744,
        993_462_016,
        id="an older pattern",
    ),
    pytest.param(
        {
            "model_type": "gemma3_text",
            "num_hidden_layers": 5,
            "sliding_window": 64,
            "use_bidirectional_attention": True,
        },
        655_360,
        993_462_016,
        id="half a window",
    ),
    pytest.param(
        {
            "model_type": "gemma3n_text",
            "num_hidden_layers": 7,
            "num_kv_shared_layers": 2,
            "intermediate_size": [256, 256, 512, 512, 512, 256, 256],
            "sliding_window": 64,
            "vocab_size": 1000,
            "vocab_size_per_layer_input": 1000,
        },
        1_130_496,
        126_963_504,
        id="shared caches and a width a layer",
    ),
    pytest.param(
        {
            "model_type": "gemma4_text",
            "num_hidden_layers": 3,
            "layer_types": [F, S, S],
            "sliding_window": 64,
            "vocab_size": 1000,
            "vocab_size_per_layer_input": 1000,
        },
        5_173_248,
        270_301_952,
        id="the last layer is full whatever is named",
    ),
    pytest.param(
        {
            "model_type": "gemma4_text",
            "num_hidden_layers": 6,
            "attention_k_eq_v": True,
            "num_global_key_value_heads": 1,
            "global_head_dim": 128,
            "sliding_window": 64,
            "vocab_size": 1000,
            "vocab_size_per_layer_input": 1000,
        },
        1_443_840,
        472_529_664,
        id="values that are keys, with heads of their own",
    ),
    pytest.param(
        {
            "model_type": "gemma4_text",
            "num_hidden_layers": 6,
            "per_layer_config": {"5": {"head_dim": 64, "num_key_value_heads": 2}},
            "sliding_window": 64,
            "vocab_size": 1000,
            "vocab_size_per_layer_input": 1000,
        },
        1_443_840,
        470_465_152,
        id="a saved file names the full layers one by one",
    ),
    pytest.param(
        {
            "model_type": "gemma4_text",
            "num_hidden_layers": 12,
            "num_kv_shared_layers": 5,
            "use_double_wide_mlp": True,
            "enable_moe_block": True,
            "num_experts": 4,
            "top_k_experts": 2,
            "moe_intermediate_size": 128,
            "hidden_size_per_layer_input": 64,
            "sliding_window": 64,
            "vocab_size": 1000,
            "vocab_size_per_layer_input": 1000,
        },
        4_005_888,
        1_304_001_392,
        id="experts beside networks twice as wide where caches are shared",
    ),
]


@pytest.mark.parametrize(("config", "at_300_tokens", "parameters"), CASES)
def test_as_transformers(config: dict[str, object], at_300_tokens: int, parameters: int) -> None:
    """The cache and the parameters of transformers."""
    assert (at_300_tokens, parameters) == answer(config, tokens=300)
