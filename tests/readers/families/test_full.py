"""What dense decoders keep and hold where a config uses a rarer switch or an older key.

The figures are those of transformers 5.24.0: bytes of the cache after that many tokens in bfloat16
(0 tokens where it cannot run such a config), and parameters.
"""

from __future__ import annotations

from typing import Any

import pytest

from kvplan.core.errors import BadFile
from kvplan.core.formats import FORMATS
from kvplan.readers.hf_config import read_config

SMALL = {
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_hidden_layers": 4,
    "intermediate_size": 96,
    "vocab_size": 100,
}

# Type, keys, tokens, bytes, parameters.
CASES: dict[str, tuple[str, dict[str, Any], int, int, int]] = {
    "apertus_pruned_head": (
        "apertus1p5_text",
        SMALL | {"output_vocab_size": 60},
        300,
        307200,
        125640,
    ),
    "cohere_query_norm": (
        "cohere",
        SMALL | {"num_key_value_heads": 2, "use_qk_norm": True, "tie_word_embeddings": False},
        300,
        153600,
        136384,
    ),
    "doge_experts": (
        "doge",
        SMALL
        | {"is_moe": True, "num_experts": 20, "num_experts_per_tok": 2, "attention_bias": True},
        300,
        307200,
        167648,
    ),
    "exaone_older_names": (
        "exaone",
        {
            "hidden_size": 64,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "num_layers": 3,
            "intermediate_size": 96,
            "vocab_size": 100,
        },
        300,
        115200,
        105408,
    ),
    "head_dim_ignored": (
        "stablelm",
        SMALL
        | {
            "num_key_value_heads": 2,
            "head_dim": 32,
            "use_parallel_residual": True,
            "qk_layernorm": True,
        },
        0,
        0,
        136704,
    ),
    "head_dim_of_any_type": ("granite", SMALL | {"head_dim": 32}, 300, 614400, 218176),
    "hrm_rewritten": (
        "hrm_text",
        {
            "hidden_size": 64,
            "num_attention_heads": 4,
            "head_dim": 16,
            "num_hidden_layers": 16,
            "num_layers_per_stack": 2,
            "H_cycles": 2,
            "L_cycles": 3,
            "intermediate_size": 96,
            "vocab_size": 100,
        },
        300,
        1228800,
        168512,
    ),
    "internlm3_older_names": (
        "internlm3",
        {
            "hidden_size": 64,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 16,
            "num_hidden_layers": 3,
            "intermediate_size": 96,
            "vocab_size": 100,
            "qkv_bias": True,
            "bias": True,
        },
        300,
        115200,
        106752,
    ),
    "persimmon_plain": (
        "persimmon",
        SMALL | {"qk_layernorm": False, "num_key_value_heads": 2},
        300,
        307200,
        130304,
    ),
    "phi3_window": ("phi3", SMALL | {"sliding_window": 16}, 300, 15360, 152640),
    "starcoder2_window": (
        "starcoder2",
        SMALL | {"sliding_window": 16, "use_bias": False},
        300,
        7680,
        105856,
    ),
    "window_by_positions": (
        "smollm3",
        SMALL
        | {
            "num_key_value_heads": 2,
            "use_sliding_window": True,
            "sliding_window": 16,
            "no_rope_layers": [0, 0, 1, 0, 1],
        },
        300,
        44160,
        129856,
    ),
    "window_not_switched": (
        "smollm3",
        SMALL | {"num_key_value_heads": 2, "sliding_window": 16},
        300,
        153600,
        129856,
    ),
    "window_of_any_type": ("granite", SMALL | {"sliding_window": 64}, 300, 64512, 152640),
    "window_pattern": (
        "cwm",
        SMALL | {"num_key_value_heads": 2, "head_dim": 16, "sliding_window": 16},
        300,
        44160,
        136256,
    ),
    "window_switched": (
        "smollm3",
        SMALL
        | {
            "num_key_value_heads": 2,
            "use_sliding_window": True,
            "sliding_window": 16,
            "no_rope_layer_interval": 2,
        },
        300,
        80640,
        129856,
    ),
}


@pytest.mark.parametrize(
    ("model_type", "keys", "tokens", "num_bytes", "parameters"), CASES.values(), ids=CASES
)
def test_bytes_and_parameters(
    model_type: str, keys: dict[str, Any], tokens: int, num_bytes: int, parameters: int
) -> None:
    """The cache to the byte, the weights to the parameter."""
    model = read_config({"model_type": model_type, **keys})

    assert model.weights is not None
    assert (num_bytes, parameters) == (
        model.curve(FORMATS["bf16"]).bytes(tokens),
        model.weights.parameters,
    )


@pytest.mark.parametrize(
    "keys",
    [
        {"model_type": "hrm_text", "H_cycles": 5000, "L_cycles": 5000},
        {
            "model_type": "smollm3",
            "use_sliding_window": True,
            "sliding_window": 16,
            "no_rope_layers": [0],
        },
        {"model_type": "phi3", "sliding_window": 0},
    ],
)
def test_an_odd_value_is_refused_by_name(keys: dict[str, Any]) -> None:
    """A sentence that names the key, not a number."""
    with pytest.raises(BadFile, match=list(keys)[-1]):
        read_config(keys)
