"""Windows in dense decoders: what the frozen cases do not change.

Bytes at 300 tokens and parameters are those of transformers 5.24.0 on the same config.
"""

from __future__ import annotations

import pytest

from tests.readers.families.answers import answer

F, S = "full_attention", "sliding_attention"

CASES = [
    pytest.param(
        {"model_type": "llama", "num_hidden_layers": 3, "sliding_window": 100},
        4_866_048,
        869_298_176,
        id="a window in a type that has none",
    ),
    pytest.param(
        {
            "model_type": "mistral",
            "num_hidden_layers": 4,
            "sliding_window": 100,
            "layer_types": [F, S, F, F],
        },
        4_091_904,
        1_134_596_096,
        id="layer_types where the class has no such key",
    ),
    pytest.param(
        {"model_type": "mistral", "num_hidden_layers": 3, "sliding_window": None},
        3_686_400,
        916_484_096,
        id="a null window",
    ),
    pytest.param(
        {
            "model_type": "cohere2",
            "num_hidden_layers": 5,
            "sliding_window_pattern": 2,
            "head_dim": 64,
            "sliding_window": 64,
        },
        12_926_976,
        5_536_530_432,
        id="an older pattern and a head_dim of the file",
    ),
    pytest.param(
        {
            "model_type": "exaone4",
            "num_hidden_layers": 3,
            "sliding_window": None,
            "layer_types": [F, F, F],
        },
        14_745_600,
        1_644_196_608,
        id="no window, so no pattern",
    ),
    pytest.param(
        {
            "model_type": "modernbert-decoder",
            "num_hidden_layers": 5,
            "global_attn_every_n_layers": 2,
            "local_attention": 64,
        },
        2_955_264,
        64_399_552,
        id="an older step between full layers",
    ),
    pytest.param(
        {
            "model_type": "olmo3",
            "num_hidden_layers": 2,
            "layer_types": ["attention", S],
            "sliding_window": 64,
        },
        5_947_392,
        816_877_568,
        id="an older name of a kind",
    ),
]


@pytest.mark.parametrize(("config", "at_300_tokens", "parameters"), CASES)
def test_as_transformers(config: dict[str, object], at_300_tokens: int, parameters: int) -> None:
    """The cache and the parameters of transformers."""
    assert (at_300_tokens, parameters) == answer(config, tokens=300)
