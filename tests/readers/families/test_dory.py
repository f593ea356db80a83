"""Dory's repeated section.

Bytes at 300 tokens and parameters are those of transformers 5.24.0 on the same config.
"""

from __future__ import annotations

import pytest

from tests.readers.families.answers import answer

F, S = "full_attention", "sliding_attention"

CASES = [
    pytest.param(
        {
            "model_type": "dory",
            "num_hidden_layers": 12,
            "n_input_layers": 4,
            "n_output_layers": 4,
            "layer_types": [S, "mlp", S, "mlp", S, "mlp", F, "mlp", S, "mlp", F, "mlp"],
            "sliding_window": 64,
            "hidden_size": 512,
            "num_attention_heads": 4,
            "n_recurrent_loops": 3,
        },
        6_463_488,
        216_242_176,
        id="a saved file counts networks as layers",
    ),
    pytest.param(
        {
            "model_type": "dory",
            "num_hidden_layers": 6,
            "n_input_layers": 2,
            "n_output_layers": 2,
            "recurrent_kv_cache_mode": "last_loop",
            "sliding_window": 64,
            "hidden_size": 512,
            "num_attention_heads": 4,
        },
        2_519_040,
        216_242_176,
        id="one cache for all runs",
    ),
]


@pytest.mark.parametrize(("config", "at_300_tokens", "parameters"), CASES)
def test_as_transformers(config: dict[str, object], at_300_tokens: int, parameters: int) -> None:
    """The cache and the parameters of transformers."""
    assert (at_300_tokens, parameters) == answer(config, tokens=300)
