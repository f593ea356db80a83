"""The traits of a checkpoint, from the keys of its config."""

from __future__ import annotations

import pytest

from kvplan.readers.open_model import open_model
from kvplan.readers.traits import traits


@pytest.mark.parametrize(
    ("model", "even"),
    [
        ("deepseek-ai/DeepSeek-R1", True),
        ("moonshotai/Kimi-K2.5", True),
        ("zai-org/GLM-4.6", True),
        ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", True),
        ("Qwen/Qwen3-235B-A22B", False),
        ("openai/gpt-oss-120b", False),
        ("mistralai/Mixtral-8x7B-v0.1", False),
        ("Qwen/Qwen3-32B", False),
    ],
)
def test_a_router_with_a_correction_is_even(model: str, even: bool) -> None:
    """By the model's type."""
    assert even == open_model(model, offline=True).traits.even_experts


@pytest.mark.parametrize(
    ("keys", "even"),
    [
        ({"topk_method": "noaux_tc"}, True),
        ({"topk_method": "greedy"}, False),
        ({"topk_method": 7}, False),
        ({"text_config": {"topk_method": "noaux_tc"}}, True),
        ({}, False),
    ],
)
def test_a_config_with_code_of_its_own_names_its_method(
    keys: dict[str, object], even: bool
) -> None:
    """DeepSeek's word for choosing experts without an auxiliary loss."""
    assert even == traits(keys, "someone_elses", 4096).even_experts
