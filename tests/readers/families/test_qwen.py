"""Qwen's windows and experts: the switches that the frozen cases leave off.

Bytes at 300 tokens and parameters are those of transformers 5.24.0 on the same config.
"""

from __future__ import annotations

import pytest

from tests.readers.families.answers import answer

CASES = [
    pytest.param(
        {
            "model_type": "qwen2",
            "num_hidden_layers": 4,
            "sliding_window": 64,
            "max_window_layers": 1,
        },
        19_660_800,
        2_595_311_616,
        id="a window that is not switched on",
    ),
    pytest.param(
        {
            "model_type": "qwen2",
            "num_hidden_layers": 4,
            "sliding_window": 64,
            "max_window_layers": 1,
            "use_sliding_window": True,
        },
        8_011_776,
        2_595_311_616,
        id="full layers first",
    ),
    pytest.param(
        {
            "model_type": "qwen2_moe",
            "num_hidden_layers": 5,
            "sliding_window": 64,
            "max_window_layers": 3,
            "use_sliding_window": True,
            "decoder_sparse_step": 2,
            "mlp_only_layers": [3],
            "num_experts": 4,
        },
        8_404_992,
        913_897_472,
        id="every other of the first layers; dense by step and by place",
    ),
    pytest.param(
        {
            "model_type": "qwen3_moe",
            "num_hidden_layers": 3,
            "sliding_window": 64,
            "use_sliding_window": True,
            "num_local_experts": 4,
            "num_experts_per_tok": 2,
        },
        193_536,
        707_303_808,
        id="a window in every layer; experts under their other name",
    ),
]


@pytest.mark.parametrize(("config", "at_300_tokens", "parameters"), CASES)
def test_as_transformers(config: dict[str, object], at_300_tokens: int, parameters: int) -> None:
    """The cache and the parameters of transformers."""
    assert (at_300_tokens, parameters) == answer(config, tokens=300)
