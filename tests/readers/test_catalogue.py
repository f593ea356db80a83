"""The catalogue: partial copies answer with their own model's figures, or say what they lack."""

from __future__ import annotations

import pytest

from kvplan.readers import catalogue
from kvplan.readers.hf_config import read_config
from kvplan.readers.open_model import open_model


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        # The number of elements of the published checkpoints.
        ("Qwen/Qwen2.5-VL-3B-Instruct", 3_754_622_976),
        ("Qwen/Qwen2.5-VL-72B-Instruct", 73_410_777_344),
        ("mistralai/Mistral-Small-3.1-24B-Instruct-2503", 24_011_545_600),
        ("CohereLabs/c4ai-command-r7b-12-2024", 8_028_033_024),
        ("ibm-granite/granite-3.1-8b-instruct", 8_170_848_256),
        ("microsoft/Phi-4-mini-instruct", 3_836_021_760),
    ],
)
def test_parameters_of_partial_copies(model: str, expected: int) -> None:
    """What the copy lacks is supplied where it is published."""
    weights = open_model(model, offline=True).weights

    assert weights is not None
    assert expected == weights.parameters


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("mistralai/Mistral-7B-Instruct-v0.2", 131_072),
        ("mistralai/Mistral-Large-Instruct-2411", 360_448),
        ("mistralai/Ministral-3-14B-Instruct-2512", 163_840),
        ("Qwen/Qwen3-VL-Embedding-2B", 114_688),
        ("ibm-granite/granite-vision-3.2-2b", 81_920),
        ("mistralai/Ministral-3-3B-Instruct-2512", 106_496),
        ("LGAI-EXAONE/EXAONE-4.0-1.2B", 61_440),
    ],
)
def test_bytes_per_token_of_partial_copies(model: str, expected: int) -> None:
    """Full attention, and heads that stand at the file's own level."""
    layers = open_model(model, offline=True).layers()

    assert {"full_attention"} == {layer.kind for layer, _ in layers}
    assert expected == sum(
        count * 2 * (layer.heads or 0) * ((layer.key_width or 0) + (layer.value_width or 0))
        for layer, count in layers
    )


@pytest.mark.parametrize(
    ("model", "full", "windows"),
    [("XiaomiMiMo/MiMo-V2.5", 9, 39), ("XiaomiMiMo/MiMo-V2.5-Pro", 10, 60)],
)
def test_windows_whose_number_is_known(model: str, full: int, windows: int) -> None:
    """A size depends on how many layers have a window, not on which."""
    counts = {layer.kind: count for layer, count in open_model(model, offline=True).layers()}

    assert {"full_attention": full, "sliding_window": windows} == counts


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("llama-3.1-405b", 811_706_777_600),
        ("meta-llama/Llama-3.1-405B", 811_706_777_600),
        ("meta-llama/Llama-3.1-405B-Instruct-FP8", 415_943_499_776),
    ],
)
def test_a_copy_in_another_format_has_its_own_name(name: str, expected: int) -> None:
    """The base model's weights are in 16 bits."""
    weights = open_model(name, offline=True).weights

    assert weights is not None
    assert expected == weights.num_bytes


def test_a_number_that_the_name_contradicts() -> None:
    """No weights rather than another model's."""
    model = open_model("LiquidAI/LFM2-2.6B", offline=True)

    assert model.weights is None
    assert any("Parameters are not counted" in text for text in model.warnings)


def test_a_copy_of_the_language_model_alone() -> None:
    """What stands at the level of a composite is its language model; no encoder is made up."""
    text = {"num_hidden_layers": 28, "hidden_size": 2048, "num_attention_heads": 16,
            "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 6144}  # fmt: skip
    model = read_config({"model_type": "qwen3_vl", **text})

    assert model.weights is not None
    assert 0 == model.weights.of_role("tower")
    assert (
        "Parameters are those of the language model alone: the config has no vision_config.",
    ) == model.warnings


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("LLAMA-3.1-8b", "meta-llama/Llama-3.1-8B"),
        ("llama3.1:8b", "meta-llama/Llama-3.1-8B"),
        ("llama3.3", "meta-llama/Llama-3.3-70B-Instruct"),
        ("llama-4-scout", "meta-llama/Llama-4-Scout-17B-16E"),
        ("mistral-nemo", "mistralai/Mistral-Nemo-Instruct-2407"),
        ("mixtral-8x22b", "mistralai/Mixtral-8x22B-v0.1"),
        ("deepseek-v2", None),  # Lite is another model
        ("deepseek-v3.1", None),  # the one here is a copy in another format
        ("gemma3", None),  # of several sizes
        ("llama2", None),
        ("bytedance", None),  # who made it
        ("grok", None),  # which one
        ("", None),
        ("a" * 100_000, None),
    ],
)
def test_names(name: str, expected: str | None) -> None:
    """A beginning answers only where all that it leaves open changes no shape."""
    found = catalogue.find(name)

    assert expected == (found.entry.id if found else None)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("deepseek-v2", "deepseek-ai/DeepSeek-V2-Lite"),
        ("lama-3.1-8b", "meta-llama/Llama-3.1-8B"),
        ("gemma3", "google/gemma-3-4b-it"),
    ],
)
def test_near_names(name: str, expected: str) -> None:
    """What begins so comes first, then what is spelled alike."""
    assert expected in catalogue.near(name)


def test_every_entry_is_answered() -> None:
    """By some figure for its cache."""
    refused = [entry.id for entry in catalogue.entries() if not _layers(entry.id)]

    assert [] == refused


def _layers(model: str) -> int:
    return len(open_model(model, offline=True).blocks)
